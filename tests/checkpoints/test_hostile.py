"""Hostile pickles and files: nothing runs, each is reported, memory and time are bounded."""

import os
import pickle
import re
import struct
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import checkpoint_files as files
import pytest
from helpers import run_child

from unsloth_hook.checkpoints import allow_list, loading, paths, pickle_reader
from unsloth_hook.checkpoints.conversion import convert_checkpoint
from unsloth_hook.checkpoints.errors import CheckpointError, UnsafeCheckpointError
from unsloth_hook.checkpoints.inspection import inspect_checkpoint
from unsloth_hook.checkpoints.loading import load_training_args as load
from unsloth_hook.checkpoints.pickle_tree import Global

# What every payload would do: make this folder.
CANARY = "canary-of-unsloth-hook"
NAME = f"X{struct.pack('<I', len(CANARY)).decode('latin1')}{CANARY}".encode("latin1")
ARGS = NAME + b"\x85"
SFT = b"ctrl.trainer.sft_config\nSFTConfig\n"
OBJECT = b"cbuiltins\nobject\n"


def short(text: str) -> bytes:
    return b"\x8c" + bytes([len(text)]) + text.encode()


def reduce(module: str, name: str, args: bytes = ARGS) -> bytes:
    return b"c" + f"{module}\n{name}\n".encode() + args + b"R"


# Body of a pickle (between PROTO and STOP), and what the report must name.
CORPUS: dict[str, tuple[bytes, str]] = {
    # Every opcode that can name or call a global.
    "GLOBAL, REDUCE": (reduce("os", "mkdir"), "os.mkdir"),
    "GLOBAL alone": (b"cos\nmkdir\n", "os.mkdir"),
    "GLOBAL dropped with POP": (reduce("os", "mkdir") + b"0N", "os.mkdir"),
    "GLOBAL dropped with POP_MARK": (b"(" + reduce("os", "mkdir") + b"1N", "os.mkdir"),
    "STACK_GLOBAL": (short("os") + short("mkdir") + b"\x93" + ARGS + b"R", "os.mkdir"),
    "STACK_GLOBAL through the memo": (
        short("mkdir") + b"\x94" + short("os") + b"\x94" + b"0" + b"0" + b"h\x01h\x00\x93" + ARGS + b"R",
        "os.mkdir",
    ),
    "STACK_GLOBAL through PUT and LONG_BINGET": (
        short("os")
        + b"p7\n"
        + b"0"
        + short("mkdir")
        + b"r\x09\x00\x00\x00"
        + b"0"
        + b"j\x07\x00\x00\x00"
        + b"g9\n\x93"
        + ARGS
        + b"R",
        "os.mkdir",
    ),
    "STACK_GLOBAL through DUP": (
        short("posix") + b"0" + short("os") + b"20" + short("mkdir") + b"\x93" + ARGS + b"R",
        "os.mkdir",
    ),
    "STACK_GLOBAL of a computed name": (
        reduce("builtins", "str", short("os") + b"\x85") + short("mkdir") + b"\x93" + ARGS + b"R",
        "builtins.str",
    ),
    "STACK_GLOBAL of numbers": (b"K\x01K\x02\x93", "computed while unpickling"),
    "INST": (b"(" + NAME + b"ios\nmkdir\n", "os.mkdir"),
    "OBJ": (b"(cos\nmkdir\n" + NAME + b"o", "os.mkdir"),
    "NEWOBJ": (b"csubprocess\nPopen\n)\x81", "subprocess.Popen"),
    "NEWOBJ_EX": (b"csubprocess\nPopen\n" + ARGS + b"}\x92", "subprocess.Popen"),
    "BUILD with a strange state": (b"cos\nmkdir\n)\x81" + ARGS + b"b", "os.mkdir"),
    "EXT1": (b"\x82\x01", "extension code 1"),
    "EXT2": (b"\x83\x01\x01", "extension code 257"),
    "EXT4": (b"\x84\x01\x01\x01\x00", "extension code"),
    "PERSID": (b"Pname\n", "persistent id"),
    "BINPERSID": (NAME + b"Q", "persistent id"),
    "NEXT_BUFFER": (b"\x97", "buffer"),
    # Names.
    "a dotted name": (b"ctorch\nos.mkdir\n" + ARGS + b"R", "torch.os.mkdir"),
    "a dotted name through STACK_GLOBAL": (
        short("torch") + short("serialization.os.mkdir") + b"\x93" + ARGS + b"R",
        "os.mkdir",
    ),
    "a dotted name in a stray module": (reduce("UnslothSFTTrainer", "os.mkdir"), "UnslothSFTTrainer.os.mkdir"),
    "builtins": (reduce("builtins", "exec"), "builtins.exec"),
    "builtins, old spelling": (reduce("__builtin__", "eval"), "__builtin__.eval"),
    "getattr": (b"cbuiltins\ngetattr\n" + SFT + short("__init__") + b"\x86R", "builtins.getattr"),
    "copyreg, of a number": (b"ccopyreg\n_reconstructor\n" + SFT + b"cbuiltins\nint\nK\x05\x87R", "builtins.int"),
    "copyreg, with a state": (b"ccopyreg\n_reconstructor\n" + SFT + OBJECT + b"K\x05\x87R", "copyreg._reconstructor"),
    "copyreg, with too little": (b"ccopyreg\n_reconstructor\n" + SFT + OBJECT + b"\x86R", "copyreg._reconstructor"),
    "copyreg, not called": (b"ccopyreg\n_reconstructor\n" + SFT + OBJECT + b"N\x87\x81", "copyreg._reconstructor"),
    "copyreg, of a stranger": (
        b"ccopyreg\n_reconstructor\ncsubprocess\nPopen\n" + OBJECT + b"N\x87R",
        "subprocess.Popen",
    ),
    "copyreg, of nothing": (b"ccopyreg\n_reconstructor\nN" + OBJECT + b"N\x87R", "a NoneType"),
    "object": (OBJECT + b")\x81", "builtins.object"),
    "codecs": (reduce("_codecs", "encode"), "_codecs.encode"),
    "operator": (reduce("operator", "attrgetter"), "operator.attrgetter"),
    "functools.partial": (b"cfunctools\npartial\ncos\nmkdir\n\x85R", "functools.partial"),
    "posix": (reduce("posix", "mkdir"), "posix.mkdir"),
    "nt": (reduce("nt", "mkdir"), "nt.mkdir"),
    "pathlib": (reduce("pathlib", "PosixPath"), "pathlib.PosixPath"),
    "__main__": (b"c__main__\nMyConfig\n)\x81", "__main__.MyConfig"),
    # Functions and modules inside allowed packages.
    "a function of torch": (reduce("torch", "load"), "torch.load"),
    "a function of torch, not called": (b"ctorch\nload\n", "torch.load"),
    "a tensor": (reduce("torch._utils", "_rebuild_tensor_v2"), "torch._utils._rebuild_tensor_v2"),
    "torch's hub": (reduce("torch.hub", "load"), "torch.hub.load"),
    "a function of transformers": (
        reduce("transformers.trainer_utils", "set_seed", b"K\x01\x85"),
        "trainer_utils.set_seed",
    ),
    "a function of transformers.utils": (reduce("transformers.utils.hub", "cached_file"), "cached_file"),
    "a module that transformers imports": (reduce("transformers.trainer_utils", "os"), "trainer_utils.os"),
    "a function that transformers imports": (reduce("transformers.trainer_utils", "NamedTuple"), "NamedTuple"),
    "a class that transformers imports": (b"ctransformers.trainer_utils\nAny\n)\x81", "trainer_utils.Any"),
    "a function of trl": (reduce("trl.trainer.utils", "pad"), "trl.trainer.utils.pad"),
    "a function of accelerate": (reduce("accelerate.utils.other", "save"), "accelerate.utils.other.save"),
    "a class that is no config": (b"ctransformers.trainer\nTrainer\n)\x81", "transformers.trainer.Trainer"),
    "a dataclass that is no config": (b"ctransformers.modeling_outputs\nBaseModelOutput\n)\x81", "BaseModelOutput"),
    "a script": (b"ctrl.scripts.utils\nScriptArguments\n)\x81", "trl.scripts.utils.ScriptArguments"),
    "a command line": (reduce("transformers.commands.env", "EnvironmentCommand"), "transformers.commands.env"),
    "the trainer of a stray module": (
        b"cUnslothSFTTrainer\nUnslothSFTTrainer\n)\x81",
        "UnslothSFTTrainer.UnslothSFTTrainer",
    ),
    # Names that merely look allowed.
    "trl with a tail": (b"ctrl_evil.trainer.sft_config\nSFTConfig\n)\x81", "trl_evil"),
    "transformers with a tail": (b"ctransformersx.training_args\nTrainingArguments\n)\x81", "transformersx"),
    "torchvision": (reduce("torchx", "device"), "torchx.device"),
    "a device elsewhere": (reduce("torch.cuda", "device"), "torch.cuda.device"),
    "a name with a space": (reduce("trl.trainer.sft_config os", "mkdir"), "mkdir"),
    "a module with an escape": (b"ctr\\x6c.trainer.sft_config\nSFTConfig\n)\x81", "x6c"),
    "a module of dots": (reduce("trl..trainer", "SFTConfig"), "trl..trainer"),
    "another config of a stray module": (b"cUnslothSFTTrainer\nUnslothGRPOConfig\n)\x81", "UnslothGRPOConfig"),
    "a stray name inside a package": (b"cevil.UnslothSFTTrainer\nUnslothSFTConfig\n)\x81", "evil.UnslothSFTTrainer"),
    # Names on the list, used as no config uses them.
    "a config called": (SFT + ARGS + b"R", "SFTConfig"),
    "a config with arguments of NEWOBJ": (SFT + ARGS + b"\x81", "SFTConfig"),
    "BUILD on a class": (SFT + b"N}" + short("__post_init__") + b"cos\nmkdir\ns\x86b", "os.mkdir"),
    "BUILD on a class, plain values": (SFT + b"N}" + short("seed") + b"K\x01s\x86b", "BUILD"),
    "BUILD on an enum's member": (
        b"ctransformers.trainer_utils\nIntervalStrategy\n"
        + short("no")
        + b"\x85R}"
        + short("_value_")
        + short("x")
        + b"sb",
        "IntervalStrategy",
    ),
    "a state with slots": (SFT + b")\x81N}" + short("seed") + b"K\x01s\x86b", "SFTConfig"),
    "an enum of a call": (
        b"ctransformers.trainer_utils\nIntervalStrategy\n" + reduce("os", "mkdir") + b"\x85R",
        "os.mkdir",
    ),
    "a call of a call's result": (reduce("os", "mkdir") + ARGS + b"R", "os.mkdir"),
    "a device with too much": (b"ctorch\ndevice\n" + short("cpu") + b"K\x00K\x00\x87R", "torch.device"),
    "a container of a stranger": (b"ccollections\ndefaultdict\ncos\nmkdir\n\x85R", "os.mkdir"),
    "a container of a number": (b"cbuiltins\nbytearray\nJ\x00\x00\x00\x7f\x85R", "bytearray"),
    "members for a config": (SFT + b")\x81(K\x01e", "SFTConfig"),
    "items for a config": (SFT + b")\x81(" + short("a") + b"K\x01u", "SFTConfig"),
}
assert len(CORPUS) >= 30

# Streams that break before or after they have named something: an unpickler runs what comes before the break.
BROKEN = {
    "no STOP": reduce("os", "mkdir"),
    "an unknown opcode after": reduce("os", "mkdir") + b"\xff.",
    "a text cut short": reduce("os", "mkdir") + b"X\xff\xff\xff\x7fabc",
    "a stack that runs dry": reduce("os", "mkdir") + b"0000.",
    "a memo that is not there": reduce("os", "mkdir") + b"h\x63.",
}


def bare(body: bytes) -> bytes:
    return b"\x80\x04" + body + b"."


def in_a_field(body: bytes) -> bytes:
    return b"\x80\x04" + SFT + b")\x81}" + short("vllm_sampling_params") + body + b"sb."


SHAPES: dict[str, Callable[[bytes], bytes]] = {
    "bare": bare,
    "bare, in a field": in_a_field,
    "zip": lambda body: files.zipped(bare(body)),
    "zip, in a field": lambda body: files.zipped(in_a_field(body), compress=zipfile.ZIP_DEFLATED),
    "legacy": lambda body: (
        pickle.dumps(0x1950A86A20F9469CFC6C, 2)
        + pickle.dumps(1001, 2)
        + pickle.dumps({}, 2)
        + bare(body)
        + b"\x80\x02]."
    ),
}


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CORPUS)
def test_nothing_runs_and_it_is_reported(case: str, shape: str, at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body, named = CORPUS[case]
    monkeypatch.setattr(loading, "import_module", None)  # whoever asks for an import fails
    path = at / "training_args.bin"
    path.write_bytes(SHAPES[shape](body))
    modules = set(sys.modules)
    found = inspect_checkpoint(path)
    assert found.verdict == "unsafe"
    assert named in " ".join(
        [*found.notes, *(f"{each.name} {each.note}" for each in found.globals if each.verdict == "unsafe")]
    )
    with pytest.raises(UnsafeCheckpointError, match=re.escape(named)) as caught:
        load(path)
    assert str(path) in str(caught.value)
    if not (case in CARRIED and "field" in shape):
        with pytest.raises(CheckpointError):
            convert_checkpoint(path, at / "out.bin")
    assert not (at / CANARY).exists() and not (at / "out.bin").exists()
    assert not {name.partition(".")[0] for name in set(sys.modules) - modules} & {
        "torch",
        "transformers",
        "trl",
        "evil",
    }


# An object of a package of its own is left out by convert, with a report; in the field of a config the rest is kept.
CARRIED = {"trl with a tail", "transformers with a tail", "a stray name inside a package"}


@pytest.mark.parametrize("name", ["os.mkdir", "SFTConfig.__init__", "a b", ""])
def test_what_is_no_identifier_is_no_class(name: str) -> None:
    for module in ("torch", "trl.trainer.sft_config", "UnslothSFTTrainer", "vllm"):
        assert allow_list.classify(Global(module, name)).note == "not the name of a class in a module"


def test_the_payloads_would_run() -> None:
    """The corpus means something: Python's own unpickler does make the folder."""
    script = f"""
    import os, pickle
    for body in {[CORPUS[case][0] for case in ("GLOBAL, REDUCE", "STACK_GLOBAL through the memo", "INST", "OBJ")]!r}:
        pickle.loads(b"\\x80\\x04" + body + b".")
        os.rmdir({CANARY!r})
    for body in {[*BROKEN.values()]!r}:
        try:
            pickle.loads(b"\\x80\\x04" + body)
        except Exception:
            os.rmdir({CANARY!r})
        else:
            raise AssertionError(body)
    """
    run_child(script)


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_named_before_a_break_is_reported(case: str, at: Path) -> None:
    path = at / "training_args.bin"
    path.write_bytes(b"\x80\x04" + BROKEN[case])
    found = inspect_checkpoint(path)
    assert (found.verdict, found.globals[0].name) == ("unsafe", "os.mkdir")
    with pytest.raises(CheckpointError):
        load(path)
    assert not (at / CANARY).exists()


def test_a_lookalike_letter_is_reported(at: Path) -> None:
    path = at / "training_args.bin"
    path.write_bytes(b"\x80\x04ctrl.trainer.sft_config\nSFTC\xd0\xbenfig\n)\x81.")
    assert inspect_checkpoint(path).notes[0] == "a name that is not ASCII"
    with pytest.raises(CheckpointError):
        load(path)


def test_a_second_pickle_behind_the_first_is_looked_at(at: Path) -> None:
    path = at / "training_args.bin"
    path.write_bytes(files.pickle_of(files.SFT_PORTABLE) + bare(reduce("os", "mkdir")))
    assert inspect_checkpoint(path).verdict == "unsafe"
    path.write_bytes(files.pickle_of(files.SFT_PORTABLE) + b"trailing text")
    found = inspect_checkpoint(path)
    assert found.verdict == "portable" and "13 bytes after the pickle" in found.notes[0]


def archive(*entries: tuple[str, bytes]) -> bytes:
    import io
    import warnings

    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        warnings.simplefilter("ignore")
        for name, content in entries:
            made.writestr(name, content)
    return out.getvalue()


GOOD, EVIL = files.pickle_of(files.SFT_PORTABLE), bare(reduce("os", "mkdir"))


def deep(count: int) -> bytes:
    return bare(b"N" + b"\x85" * count)


def laughs(levels: int = 60) -> bytes:
    return bare(
        b"]"
        + b"".join(b"q" + bytes([n]) + b"0](" + b"h" + bytes([n]) + b"h" + bytes([n]) + b"e" for n in range(levels))
    )


def collisions() -> bytes:
    # Integers that are multiples of 2**61 - 1 all have the hash 0 (Python's docs, "Hashing of numeric types").
    numbers = b"".join(pickle.dumps(n * (2**61 - 1), 2)[2:-1] + b"N" for n in range(1, 30_000))
    return bare(b"}(" + numbers + b"u")


def claiming(opcode: bytes, size: int = 4 * 2**30) -> bytes:
    return b"\x80\x05" + opcode + struct.pack("<Q", size) + b"x"


def big_directory() -> bytes:
    return archive(*[(f"a/{n}", b"") for n in range(30_000)], ("a/data.pkl", GOOD))


def claimed_size() -> bytes:
    data = bytearray(files.SFT.read_bytes())
    position = data.rfind(b"PK\x01\x02", 0, data.find(b"data.pkl", data.find(b"PK\x01\x02")))
    struct.pack_into("<L", data, position + 24, 0xFFFFFFF0)
    return bytes(data)


BAD_FILES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "one byte": lambda: b"P",
    "text": lambda: b"hello, this is no pickle\n",
    "json": lambda: b'{"learning_rate": 0.1}',
    "safetensors": lambda: (
        struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' + bytes(10)
    ),
    "zeros": lambda: bytes(100_000),
    "a zip of something else": lambda: archive(("readme.txt", b"hi")),
    "a zip with two pickles": lambda: archive(("a/data.pkl", GOOD), ("b/data.pkl", EVIL)),
    "a zip with one name twice": lambda: archive(("a/data.pkl", GOOD), ("a/data.pkl", EVIL)),
    "a zip with one name in two cases": lambda: archive(("a/DATA.pkl", EVIL), ("a/data.pkl", GOOD)),
    "TorchScript": lambda: archive(("a/data.pkl", GOOD), ("a/constants.pkl", b"\x80\x02).")),
    "a zip bomb": lambda: archive(("a/data.pkl", bytes(300 * 2**20))),
    "a zip bomb that unpickles": lambda: archive(("a/data.pkl", b"\x80\x02" + b"N0" * (100 * 2**20) + b"N.")),
    "a zip that claims 4 GB": claimed_size,
    "a zip of 30,000 entries": big_directory,
    "a zip cut in half": lambda: files.SFT.read_bytes()[:5000],
    "a zip without its end": lambda: files.SFT.read_bytes()[:-30],
    "text of 4 GB": lambda: claiming(b"\x8d"),
    "bytes of 4 GB": lambda: claiming(b"\x8e"),
    "bytearray of 4 GB": lambda: claiming(b"\x96"),
    "a frame of 4 GB": lambda: claiming(b"\x95"),
    "text of 2**63 bytes": lambda: claiming(b"\x8d", 2**63 - 1),
    "an integer of 2 GB": lambda: b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"x",
    "an integer of 3 MB": lambda: bare(b"\x8b" + struct.pack("<i", 3 * 2**20) + b"\x7f" * 3 * 2**20),
    "an integer of 3 million digits": lambda: bare(b"L" + b"9" * 3_000_000 + b"L\n"),
    "a memo index of 2**32": lambda: bare(b"Nr\xff\xff\xff\xff"),
    "a stack of 5 million": lambda: bare(b"N" * 5_000_000),
    "a million marks": lambda: bare(b"(" * 1_000_000),
    "nested 150,000 deep": lambda: deep(150_000),
    "billion laughs": laughs,
    "a list in itself": lambda: bare(b"]q\x00h\x00a"),
    "numbers that collide": collisions,
    "protocol 200": lambda: b"\x80\xc8N.",
    "a dict": lambda: bare(b"}"),
    "a number": lambda: bare(b"K\x05"),
    "an enum alone": lambda: bare(b"ctransformers.trainer_utils\nIntervalStrategy\n" + short("no") + b"\x85R"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_cost_nothing_and_say_why(case: str, at: Path, a_second: float) -> None:
    path = at / "training_args.bin"
    path.write_bytes(BAD_FILES[case]())
    inspect_checkpoint(files.SFT_PORTABLE)  # what is read once per process is not what is measured
    for function in (inspect_checkpoint, load, lambda path: convert_checkpoint(path, at / "out.bin")):
        started = time.process_time()
        with pytest.raises(CheckpointError, match=re.escape(str(path))):
            function(path)
        assert time.process_time() - started < a_second
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError):
            inspect_checkpoint(path)
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
    assert not (at / "out.bin").exists()


BIG = b"\x8b" + struct.pack("<i", 5000) + b"\x7f" * 5000


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (laughs()[2:-1], "nested more than 60 deep"),
        (laughs(30)[2:-1], "more than 200,000 values"),
        (deep(200)[2:-1], "nested more than 60 deep"),
        (BIG, "an integer of 39,999 bits"),
    ],
    ids=["deep laughs", "billion laughs", "deep", "big"],
)
def test_a_config_whose_values_would_explode(body: bytes, said: str, at: Path) -> None:
    path = at / "training_args.bin"
    path.write_bytes(in_a_field(body))
    for function in (inspect_checkpoint, load, lambda path: convert_checkpoint(path, at / "out.bin")):
        with pytest.raises(CheckpointError, match=said):
            function(path)


def test_no_more_is_read_of_a_pickle_than_a_config_can_have(at: Path) -> None:
    """However fast a machine is: the bound is one of work, not of time."""
    path = at / "training_args.bin"
    path.write_bytes(BAD_FILES["a stack of 5 million"]())
    for function in (inspect_checkpoint, load, lambda path: convert_checkpoint(path, at / "out.bin")):
        with pytest.raises(CheckpointError, match="more than 100,000 opcodes"):
            function(path)


def test_every_truncation_of_a_real_file(at: Path) -> None:
    path, whole = at / "training_args.bin", files.SFT.read_bytes()
    data = files.pickle_of(files.SFT)
    for content in [*(whole[:n] for n in range(0, len(whole), 97)), *(data[:n] for n in range(0, len(data), 41))]:
        path.write_bytes(content)
        with pytest.raises(CheckpointError):
            inspect_checkpoint(path)


def test_folders_pipes_and_devices(at: Path) -> None:
    (at / "folder").mkdir()
    kinds = {at / "folder": "Is a directory"}
    if sys.platform != "win32":
        os.mkfifo(at / "pipe")
        kinds |= {at / "pipe": "not a regular file", Path("/dev/zero"): "not a regular file"}
    for path, reason in kinds.items():
        with pytest.raises(CheckpointError, match=re.escape(str(path)) + f".*{reason}"):
            inspect_checkpoint(path)


def test_the_bounds_leave_room_for_real_files() -> None:
    import pickletools

    longest = max(len(list(pickletools.genops(files.pickle_of(files.DATA / name)))) for name in files.ALL)
    assert longest * 50 < pickle_reader.MAX_OPCODES
    assert paths.CHECKPOINT_NAME == "training_args.bin"
