"""Print the globals and the values of a training_args.bin, a line each, in a Python where the hook is off."""

import pickletools
import sys
import zipfile

import torch

if any(name.split(".")[0] == "unsloth_hook" for name in sys.modules):
    sys.exit("the hook is on")
with zipfile.ZipFile(sys.argv[1]) as archive:
    data = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
for name in sorted({arg for opcode, arg, _ in pickletools.genops(data) if opcode.name == "GLOBAL"}):
    print("global", name)
args = torch.load(sys.argv[1], weights_only=False)
print("class", type(args).__module__, type(args).__qualname__)
for name, value in vars(args).items():
    print(name, "=", repr(value).replace("\n", " "))
