"""Components, of which every experiment is made."""

from ppo_jax.component.definition import (
    as_arrays,
    checked,
    component,
    concrete,
    converted,
    host,
    numbers,
    program,
    replace_at,
    require,
    require_field,
    require_number,
    require_range,
    typed,
)
from ppo_jax.component.names import children, descendants, is_component
