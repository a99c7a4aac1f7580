"""`%load_ext unsloth_hook`, in a real IPython (issue 5, item 5)."""

from preloaded import run_child

SHELL = """
    from IPython.core.interactiveshell import InteractiveShell
    shell = InteractiveShell.instance()

    def cell(source):
        print(">", source)
        result = shell.run_cell(source)
        result.raise_error()
"""
EARLY = """
    cell("%load_ext unsloth_hook")
    cell("import sys; print('trl' in sys.modules)")
    cell("%load_ext unsloth_hook")
    cell("%reload_ext unsloth_hook")
    cell("import unsloth_hook; print(unsloth_hook.status()['route'])")
    cell("from trl import SFTConfig; print(unsloth_hook.is_patched(SFTConfig), SFTConfig(unsloth_num_chunks=4, "
         "use_cpu=True).unsloth_num_chunks)")
    cell("%unload_ext unsloth_hook")
    cell("print(unsloth_hook.status()['active'])")
"""
LATE = """
    cell("from trl import SFTConfig as Taken")
    cell("%load_ext unsloth_hook")
    cell("import trl, unsloth_hook; print(unsloth_hook.is_patched(trl.SFTConfig), unsloth_hook.is_patched(Taken))")
"""
ON = "unsloth_hook is on in this kernel: "
OFF = "unsloth_hook is off. Classes that are patched stay patched, and keep pickling.\n"


def answers(script: str, **env: str) -> dict[str, list[str]]:
    """What each cell printed."""
    done = run_child(SHELL + script, env={"IPYTHONDIR": "/nonexistent", **env})
    cells: dict[str, list[str]] = {}
    for part in done.stdout.split("> ")[1:]:
        source, _, shown = part.partition("\n")
        cells.setdefault(source, []).append(shown)
    cells["stderr"] = [done.stderr]
    return cells


def test_loaded_first_it_says_what_it_did_and_unloads() -> None:
    cells = answers(EARLY)
    first, second = cells["%load_ext unsloth_hook"]
    assert first.startswith(ON)
    assert "%env UNSLOTH_HOOK=1" in first
    assert second == "The unsloth_hook extension is already loaded. To reload it, use:\n  %reload_ext unsloth_hook\n"
    assert cells["import sys; print('trl' in sys.modules)"] == ["False\n"]
    off_and_on = cells["%reload_ext unsloth_hook"][0]
    assert off_and_on.startswith(OFF + ON)
    assert cells["import unsloth_hook; print(unsloth_hook.status()['route'])"] == ["ipython\n"]
    (patched,) = (shown for source, shown in cells.items() if source.startswith("from trl"))
    assert patched == ["True 4\n"]
    assert cells["%unload_ext unsloth_hook"] == [OFF]
    assert cells["print(unsloth_hook.status()['active'])"] == ["False\n"]
    assert "imported before" not in cells["stderr"][0]


def test_loaded_after_trl_it_warns_and_still_patches() -> None:
    cells = answers(LATE)
    assert cells["%load_ext unsloth_hook"][0].startswith(ON)
    (stderr,) = cells["stderr"]
    assert "UserWarning: TRL was imported before %load_ext unsloth_hook" in stderr
    assert "restart the kernel" in stderr
    assert cells[
        "import trl, unsloth_hook; print(unsloth_hook.is_patched(trl.SFTConfig), unsloth_hook.is_patched(Taken))"
    ] == ["True False\n"]


def test_on_or_off_before_it_says_so_and_changes_nothing() -> None:
    script = """
    cell("%load_ext unsloth_hook")
    cell("%unload_ext unsloth_hook")
    cell("import unsloth_hook; print(unsloth_hook.status()['active'])")
    """
    on = answers(script, UNSLOTH_HOOK="1")
    assert on["%load_ext unsloth_hook"] == ["unsloth_hook is on already, by the route env.\n"]
    assert "stays as it is (route env)" in on["%unload_ext unsloth_hook"][0]
    off = answers(script, UNSLOTH_HOOK="0")
    assert off["%load_ext unsloth_hook"] == ["unsloth_hook stays off: UNSLOTH_HOOK=0 says so.\n"]
    assert [cells["import unsloth_hook; print(unsloth_hook.status()['active'])"] for cells in (on, off)] == [
        ["True\n"],
        ["False\n"],
    ]
