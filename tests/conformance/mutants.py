"""Change the model in small ways, one at a time, and see whether the tests notice.

    make mutants N=500 SEED=1

Takes a random sample of the mutants that cosmic-ray's operators make of `webhook/core/kubelet`. Nothing on disk changes: a child
process gets the mutated code and runs the module's own unit tests, the model's others, then the golden cases, until one fails.
Where only functions changed, the child of a process that has collected the tests replaces their code; else it starts anew.
A mutant that hangs counts as killed. `mutants-equivalent.txt` says which survivors cannot matter, and why.
"""

import argparse
import ast
import difflib
import importlib
import multiprocessing
import os
import random
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import chain, islice
from multiprocessing.connection import wait
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[2]
MODEL, TESTS = ROOT / "webhook/core/kubelet", ROOT / "tests/unit/core/kubelet"
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.txt")
CPU_SECONDS = 40
FORK = multiprocessing.get_context("fork")

Place = tuple[Path, str, int]
"""A module, an operator's name, and which of the places that it could change."""


class Mutant(NamedTuple):
    """One changed module; `change` is its name, the line as it was, and as it is."""

    path: Path
    source: str
    change: tuple[str, str, str]

    @property
    def module(self) -> str:
        return f"webhook.core.kubelet.{self.path.stem}"


def places(path: Path) -> Iterator[Place]:
    """Yield everything that can be changed in a module."""
    nodes = list(ast_nodes(get_ast(path.read_text())))
    for name in sorted(operator_names()):
        operator = get_operator(name)
        if not operator.arguments():
            count = sum(1 for node in nodes for _ in operator().mutation_positions(node))
            yield from ((path, name, occurrence) for occurrence in range(count))


def mutants(chosen: Iterable[Place]) -> Iterator[Mutant]:
    """Yield the mutants but for those that are no Python, or only change an annotation, which nobody reads."""
    for path, name, occurrence in chosen:
        source = path.read_text()
        mutated = mutate_code(source, get_operator(name)(), occurrence)
        if mutated is not None and meaning(mutated) not in (None, meaning(source)):
            yield Mutant(path, mutated, (path.stem, *changed(source, mutated)))


@lru_cache(64)
def meaning(source: str) -> str | None:
    """Return the syntax tree without annotations; None: there is none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        for field in {"annotation", "returns"} & {*node._fields}:
            setattr(node, field, None)
    return ast.dump(tree)


def changed(source: str, mutated: str) -> tuple[str, str]:
    lines = list(difflib.unified_diff(source.splitlines(), mutated.splitlines(), n=0))[3:]
    old, new = (" / ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return old, new


# --- changed functions: put their code into those that the collected tests use ----------------------------------------------


def functions(code: CodeType) -> dict[str, CodeType]:
    """Return the code of the functions and methods of a module or class body."""
    found = {}
    for inner in (const for const in code.co_consts if isinstance(const, CodeType)):
        found |= {inner.co_qualname: inner} if inner.co_flags & 0x2 else functions(inner)  # CO_NEWLOCALS: no class body
    return found


def frame(code: CodeType) -> list[object]:
    """Return what a module consists of besides the functions."""
    consts = [frame(const) if not const.co_flags & 0x2 else const.co_qualname for const in code.co_consts if is_code(const)]
    return [code.co_code, code.co_names, [const for const in code.co_consts if not is_code(const)], consts]


def is_code(const: object) -> bool:
    return isinstance(const, CodeType)


def new_code(mutant: Mutant) -> dict[str, CodeType]:
    """Return the changed functions by qualified name; empty where something else changed."""
    was, now = (compile(source, mutant.path, "exec", dont_inherit=True) for source in (mutant.path.read_text(), mutant.source))
    if frame(was) != frame(now):
        return {}
    old = functions(was)
    return {name: code for name, code in functions(now).items() if code != old[name]}


def live(module: object) -> Iterator[FunctionType]:
    """Yield a module's functions, the methods of its classes too."""
    for value in chain(vars(module).values(), *(vars(cls).values() for cls in vars(module).values() if isinstance(cls, type))):
        bare = value.fget if isinstance(value, property) else getattr(value, "__wrapped__", value)
        if isinstance(bare, FunctionType):
            yield bare


def replace_functions(mutant: Mutant, code: dict[str, CodeType]) -> None:
    found = [function for function in live(sys.modules[mutant.module]) if function.__code__.co_qualname in code]
    for function in found:
        function.__code__ = code[function.__code__.co_qualname]
    assert {*code} <= {function.__code__.co_qualname for function in found}, mutant.change


# --- anything else: import the mutated module ------------------------------------------------------------------------------


class Loader(SourceFileLoader):
    """Finds and loads one module from a string."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.path))
        self.source = mutant.source

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return compile(self.source, self.path, "exec", dont_inherit=True)


def forget() -> None:
    """Make the next import of our own modules a new one, and of the tests, which refer to them."""
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None) or ""
        if name != "__main__" and Path(file).is_relative_to(ROOT) and "site-packages" not in file:
            del sys.modules[name]


# --- tests -----------------------------------------------------------------------------------------------------------------


class Tests:
    """A pytest plugin that calls back where the tests would run."""

    def __init__(self, then: Callable[["Tests"], object]) -> None:
        self.then = then
        self.session: Any = None

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings  # not before pytest

        few = settings(deadline=None, database=None, max_examples=30, phases=(Phase.explicit, Phase.generate))
        settings.register_profile("mutants", few)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: Any) -> bool:
        self.session = session
        self.then(self)
        return True

    def fail(self, mutant: Mutant) -> bool:
        """Tell whether a test fails: the module's own first, properties late, golden cases last."""
        own = f"test_{mutant.path.stem.removeprefix('start_')}."
        for item in sorted(self.session.items, key=lambda item: (hasattr(item.obj, "hypothesis"), own not in str(item.path))):
            try:
                item.obj(**(item.callspec.params if hasattr(item, "callspec") else {}))
            except BaseException:  # noqa: BLE001 - pytest's own are no Exception
                return True
        return any(map(golden_differs, golden_cases()))


def collect(then: Callable[[Tests], object]) -> int:
    """Collect the model's unit tests, and call back; silent."""
    silent = ["-o", "addopts=", "-p", "no:terminal", "-p", "no:cacheprovider"]
    return pytest.main([*silent, "--hypothesis-seed=0", str(TESTS)], [Tests(then)])


def golden_cases() -> Iterator[dict[str, Any]]:
    """Yield every fourth of them: enough, and four times as fast."""
    golden, compare = (importlib.import_module(f"tests.conformance.{name}") for name in ("golden", "compare"))
    return islice(chain.from_iterable(map(golden.vectors, compare.VERSIONS)), None, None, 4)


def golden_differs(vector: dict[str, Any]) -> bool:
    compare = importlib.import_module("tests.conformance.compare")
    answer = compare.ask_model(vector)
    return bool(answer.no_class or compare.difference(answer, vector["verdict"]))


def fails_with_functions(tests: Tests, mutant: Mutant, code: dict[str, CodeType]) -> bool:
    replace_functions(mutant, code)
    return tests.fail(mutant)


def fails_with_module(mutant: Mutant) -> bool:
    sys.meta_path.insert(0, Loader(mutant))
    failed: list[bool] = []
    status = collect(lambda tests: failed.append(tests.fail(mutant)))
    return status != pytest.ExitCode.OK or any(failed)


def judge(jobs: Iterable[tuple[Mutant, Callable[[], bool]]], workers: int) -> Iterator[tuple[Mutant, str]]:
    """Do each job in a child process; yield what it says, or that it had to be stopped."""
    running: dict[int, tuple[Any, Mutant]] = {}
    for mutant, job in jobs:
        while len(running) >= workers:
            yield from finished(running)
        process = FORK.Process(target=run, args=(job,))
        process.start()
        running[process.sentinel] = process, mutant
    while running:
        yield from finished(running)


def run(job: Callable[[], bool]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    os._exit(job())


def finished(running: dict[int, tuple[Any, Mutant]]) -> Iterator[tuple[Mutant, str]]:
    for sentinel in wait([*running]):
        process, mutant = running.pop(sentinel)
        process.join()
        yield mutant, "killed" if process.exitcode > 0 else "hangs" if process.exitcode else "survived"


# --- the sample ------------------------------------------------------------------------------------------------------------


def equivalent() -> set[tuple[str, ...]]:
    lines = EQUIVALENT.read_text().splitlines()
    return {tuple(part.strip() for part in line.split(" ## ")) for line in lines if line and not line.startswith("#")}


def main(given: Sequence[str] | None = None) -> int:
    """Judge a sample of mutants; exits with 1 if one survives that is not known to be equivalent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1, help="mutants at a time")
    parser.add_argument("--containing", default="", help="only mutants whose lines contain this")
    options = parser.parse_args(given)
    everything = [place for path in sorted(MODEL.glob("*.py")) for place in places(path)]
    random.Random(options.seed).shuffle(everything)
    warnings.simplefilter("ignore", SyntaxWarning)  # `x is 1` is a mutant too
    sample = list(islice(mutants(everything), options.number))
    known, counts, begun = equivalent(), Counter[str](), time.monotonic()

    def count(jobs: Iterable[tuple[Mutant, Callable[[], bool]]]) -> None:
        for mutant, found in judge(jobs, options.workers):
            counts[found] += 1
            if found in ("survived", "hangs"):
                print(found, " ## ".join(mutant.change), sep=": ", flush=True)

    counts["equivalent"] = sum(mutant.change in known for mutant in sample)
    asked = [mutant for mutant in sample if mutant.change not in known and options.containing in " ## ".join(mutant.change)]
    code = [new_code(mutant) for mutant in asked]
    unchanged = Mutant(MODEL / "masks.py", (MODEL / "masks.py").read_text(), ("", "", ""))

    def judge_functions(tests: Tests) -> None:
        (found,) = judge([(unchanged, partial(tests.fail, unchanged))], 1)
        if found[1] != "survived":
            pytest.exit("the tests fail without any mutant", 2)
        changes = zip(asked, code, strict=True)
        count((mutant, partial(fails_with_functions, tests, mutant, new)) for mutant, new in changes if new)

    if status := collect(judge_functions):
        return status
    forget()
    count((mutant, partial(fails_with_module, mutant)) for mutant, new in zip(asked, code, strict=True) if not new)
    print(f"{len(sample)} of {len(everything)} places, seed {options.seed}, {time.monotonic() - begun:.0f} s: {dict(counts)}")
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
