"""A child script, run with the hook and without: beside a config, an option of somebody else's by an extra's name."""

import dataclasses
import json
import sys
import warnings

from child_configs import attempt, keywords, options

VALUES = {"output_dir": "out", "unsloth": "s"}


def others(name):
    """Dataclasses that have a field of this name: as a number, as a text, with an alias, in a group of its own."""
    number = dataclasses.make_dataclass("Number", [(name, int, 512)])
    text = dataclasses.make_dataclass("Text", [("first", str, "f"), (name, str, "t"), ("last", int, 1)])
    alias = dataclasses.make_dataclass(
        "Alias", [("own", int, dataclasses.field(default=1, metadata={"aliases": [f"--{name}"]}))]
    )
    group = dataclasses.make_dataclass("Group", [(name, int, 512)], namespace={"_argument_group_name": "group"})
    return number, text, alias, group


def look(results):
    """What came out, short of what a config has beside these."""
    wanted = ("max_length", "max_steps", "output_dir")
    return [
        [
            type(each).__name__,
            {key: repr(value) for key, value in vars(each).items() if key in wanted or len(vars(each)) < 9},
        ]
        for each in results
    ]


def by_every_way(parser_class, types, cls, name):
    def parse(*more):
        return look(parser_class(types).parse_args_into_dataclasses(options(cls, *more)))

    def yaml():
        with open("config.yaml", "w", encoding="utf-8") as file:
            file.write("".join(f"{key}: {value!r}\n" for key, value in {**keywords(cls), name: 7}.items()))
        parser = parser_class(types)
        if hasattr(parser, "parse_args_and_config"):
            return look(parser.parse_args_and_config(["--config", "config.yaml"]))
        return look(parser.parse_yaml_file("config.yaml"))

    def json_file():
        with open("config.json", "w", encoding="utf-8") as file:
            json.dump(keywords(cls, **{name: 7}), file)
        return look(parser_class(types).parse_json_file("config.json"))

    def by_hand(group, option=f"--{name}"):
        parser = parser_class(cls)
        place = parser.add_argument_group("own") if group else parser
        place.add_argument(option, dest=name, type=int, default=2)
        return look(parser.parse_args_into_dataclasses(options(cls, option, "7")))

    dashed = f"--{name.replace('_', '-')}"
    return {
        "option": attempt(parse, f"--{name}", "7"),
        "with dashes": attempt(parse, dashed, "7"),
        "with =": attempt(parse, f"--{name}=7"),
        "abbreviated": attempt(parse, f"--{name}"[:-1], "7"),
        "not given": attempt(parse),
        "yaml": attempt(yaml),
        "json": attempt(json_file),
        "dict": attempt(lambda: look(parser_class(types).parse_dict(keywords(cls, **{name: 7})))),
        "by hand": attempt(by_hand, False),
        "by hand, in a group": attempt(by_hand, True),
        "by hand, of another option": attempt(by_hand, False, "--own-option"),
        "again": attempt(
            lambda: look(parser_class([types[0]]).parse_args_into_dataclasses(options(cls))) if types[0] is cls else 0
        ),
    }


def main():
    warnings.simplefilter("ignore")
    import trl
    from transformers import HfArgumentParser
    from trl import GRPOConfig, SFTConfig

    @dataclasses.dataclass
    class Heir(SFTConfig):
        mine: int = 1

    told = {}
    for name in sys.argv[1:]:
        pairs = [(HfArgumentParser, SFTConfig, other) for other in others(name)]
        pairs += [(trl.TrlParser, cls, others(name)[0]) for cls in (SFTConfig, GRPOConfig, Heir)]
        for parser_class, cls, other in pairs:
            for types in ((cls, other), (other, cls)):
                key = " ".join(each.__name__ for each in (parser_class, *types))
                told.setdefault(name, {})[key] = by_every_way(parser_class, types, cls, name)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
