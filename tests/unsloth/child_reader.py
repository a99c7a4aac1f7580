"""Child script: open pickled configs in a stock Python and write down what comes out.

python child_reader.py RESULT FILE...
"""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

sys.modules.update(unsloth_hook=None, unsloth=None, unsloth_zoo=None)  # type: ignore[arg-type]

import torch  # noqa: E402
from child_order import digest, extras_of, globals_of  # noqa: E402


def read(file: str) -> dict[str, Any]:
    try:
        config = torch.load(file, weights_only=False)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    cls = type(config)
    assert vars(sys.modules[cls.__module__])[cls.__qualname__] is cls
    return {
        "class": f"{cls.__module__}.{cls.__qualname__}",
        "globals": globals_of(pickle.dumps(config, 2)),
        "digest": digest(config),
        "extras": extras_of(config),
    }


result, *files = sys.argv[1:]
seen = {file: read(file) for file in files}
assert not [name for name, module in sys.modules.items() if module and "unsloth" in name.lower()]
Path(result).write_text(json.dumps(seen))
