"""What a run of a study would do, before there is anything."""

from test_study import study

from tasks.planning import plan_steps


def test_every_step_is_planned_in_the_order_of_the_run(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    steps = plan_steps(study(grid={"n_layers": [1]}, analysis={"stages": ["behaviour"]}, costs={"n_heads": [1, 2]}))
    assert [step.step for step in steps] == ["corpus", "tokens", "costs", "training", "behaviour"]
    assert not any(step.done for step in steps)
    assert all(step.seconds > 0 and step.bytes > 0 for step in steps)
    assert "costs" not in [step.step for step in plan_steps(study(grid={"n_layers": [1]}))]
