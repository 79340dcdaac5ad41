"""Every run of a sweep has its settings and its curve where tensorboard looks."""

from runs import event_values
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

from ppo_jax.sweeps import hparams

SETTINGS = [{"gamma": 0.5, "network": object}, {"gamma": 0.9, "network": object}]
METRIC = "eval/mean_reward"


def score(setting, seed, values, steps=(10, 20)):
    return {
        "setting": setting,
        "seed": seed,
        "ending": "finished",
        "steps": list(steps),
        "evaluations": {METRIC: values, "eval/std_reward": [0.0] * len(values)},
    }


def said(folder):
    """The settings of a run by name, and its evaluations."""
    given, curve = {}, []
    for step, _, value in event_values(folder):
        if value.tag.endswith("session_start_info"):
            content = value.metadata.plugin_data.content
            begun = HParamsPluginData.FromString(content).session_start_info
            for name, x in begun.hparams.items():
                given[name] = getattr(x, x.WhichOneof("kind"))
        elif value.tag == METRIC:
            curve.append((step, value.simple_value))
    return given, curve


def test_each_run_has_its_setting_its_seed_and_its_curve(tmp_path):
    """In a folder of its own; an evaluation that was not finite is not there."""
    runs = [score(0, 3, [1.0, 2.0]), score(1, 3, [None, 4.0])]
    hparams.write(tmp_path, runs, SETTINGS, METRIC)
    home = tmp_path / hparams.FOLDER
    assert sorted(path.name for path in home.iterdir()) == ["0_seed_3", "1_seed_3"]
    given, curve = said(home / "0_seed_3")
    assert given == {"gamma": 0.5, "network": "<class 'object'>", "seed": 3.0}
    assert curve == [(10, 1.0), (20, 2.0)]
    assert said(home / "1_seed_3")[1] == [(20, 4.0)]


def test_what_was_written_before_is_replaced(tmp_path):
    """By a sweep that goes on."""
    for values in ([1.0], [1.0, 2.0]):
        hparams.write(
            tmp_path, [score(0, 0, values, (10, 20)[: len(values)])], SETTINGS, METRIC
        )
    assert said(tmp_path / hparams.FOLDER / "0_seed_0")[1] == [(10, 1.0), (20, 2.0)]
