"""Events say what tensorboard's pages ask for, in its own words."""

from pathlib import Path

import pytest
from runs import event_values as read
from tensorboardX.proto.layout_pb2 import Layout
from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

from ppo_jax.host.run_dir.events import Events


@pytest.fixture
def events(tmp_path):
    return Events(tmp_path)


def test_numbers_have_a_step_and_a_time(events, tmp_path):
    events.numbers(10, 1e9, {"x": 0.5, "y/z": -2.0})
    events.close()
    assert [
        (step, when, x.tag, x.simple_value) for step, when, x in read(tmp_path)
    ] == [
        (10, 1e9, "x", 0.5),
        (10, 1e9, "y/z", -2.0),
    ]


def test_a_layout_names_exactly_what_is_drawn_together(events, tmp_path):
    """Tags are regular expressions: of `a.b` there is no `axb`."""
    events.layout({"Group": {"chart": ["a.b/c", "d"]}}, 1e9)
    events.close()
    ((_, _, value),) = read(tmp_path)
    assert value.tag == "custom_scalars__config__"
    assert value.metadata.plugin_data.plugin_name == "custom_scalars"
    ((text,),) = [value.tensor.string_val]
    (group,) = Layout.FromString(text).category
    (chart,) = group.chart
    assert (group.title, chart.title) == ("Group", "chart")
    assert [*chart.multiline.tag] == [r"^a\.b/c$", "^d$"]


def test_settings_are_numbers_texts_and_truths(events, tmp_path):
    given = {"gamma": 0.5, "n": 3, "network": "Mlp()", "on": True, "off": None}
    events.settings(given, ["eval/mean_reward"], 1e9)
    events.close()
    said = {}
    for _, _, value in read(tmp_path):
        plugin = value.metadata.plugin_data
        assert plugin.plugin_name == "hparams"
        said[value.tag] = HParamsPluginData.FromString(plugin.content)
    assert set(said) == {
        f"_hparams_/{name}"
        for name in ("experiment", "session_start_info", "session_end_info")
    }
    begun = said["_hparams_/session_start_info"].session_start_info.hparams
    assert {k: getattr(v, v.WhichOneof("kind")) for k, v in begun.items()} == {
        "gamma": 0.5,
        "n": 3.0,
        "network": "Mlp()",
        "on": True,
        "off": "None",
    }
    experiment = said["_hparams_/experiment"].experiment
    assert [x.name for x in experiment.hparam_infos] == [*given]
    assert [x.name.tag for x in experiment.metric_infos] == ["eval/mean_reward"]


def test_a_folder_has_one_file_of_events(tmp_path):
    """What was there is replaced, and a folder is made."""
    for step in (1, 2):
        events = Events(tmp_path / "a" / "b")
        events.numbers(step, 1e9, {"x": 1.0})
        events.close()
    assert [step for step, _, _ in read(tmp_path / "a" / "b")] == [2]


def test_a_relative_folder_is_no_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Events(Path("s3:bucket/x")).close()
    assert len([*(tmp_path / "s3:bucket" / "x").iterdir()]) == 1
