"""The normal form of a statement: its syntax tree as text, with gaps for top-level definitions of the project."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, NamedTuple, cast

from bench.plugins.parsed_module import WHOLE, Import, Module, Reference, Resolved, chain

GAP = "\N{WHITE SQUARE}"
DYNAMIC = re.compile(
    r"^(__import__|eval|exec|globals|importlib\.import_module|runpy\.\w+|sys\.modules)\b", re.MULTILINE
)
"""Ways to a definition that its text does not name: everything in the module counts."""
FILES = re.compile(r"^(__file__|__path__|__spec__|importlib\.resources|pkgutil\.get_data)\b", re.MULTILINE)
DISPLAYED = frozenset({"pictures", "samples"})  # methods of an evaluator that no figure comes from
POSITIONS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
FIRST = {ast.Assign: "value", ast.AnnAssign: "value", ast.NamedExpr: "value", ast.For: "iter", ast.AsyncFor: "iter"}
"""Fields that Python evaluates before it binds names, and that are therefore written first."""


class Definition(NamedTuple):
    """The normal form of a definition.

    Args:
        digest: Hex digits of its code, with gaps for `references`.
        references: What the gaps stand for, in order.
        strings: Its plain strings, which may be names of plug-ins.
        hook: It keeps track of subclasses: its own if it is a class, those of its references otherwise.
        looks_up: It finds plug-ins by name.
    """

    digest: str
    references: tuple[Reference, ...]
    strings: tuple[str, ...] = ()
    hook: bool = False
    looks_up: bool = False


class _Scope:
    """Names of a function, a class or a comprehension; `pending` are names that an outer scope may bind."""

    def __init__(self, kind: Literal["module", "class", "function", "comprehension"], outer: _Scope | None) -> None:
        self.kind, self.outer = kind, outer
        self.bound: set[str] = set()
        self.imports: dict[str, Import] = {}
        self.elsewhere: dict[str, bool] = {}  # names declared global (True) or nonlocal (False)
        self.pending: list[tuple[int, str, tuple[str, ...]]] = []

    @property
    def enclosing(self) -> _Scope:
        """The next scope outwards in which a function finds names: classes are passed over."""
        scope = self.outer
        while scope is not None and scope.kind == "class":
            scope = scope.outer
        return self if scope is None else scope


class Writer:
    """Writes statements of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.out: list[str] = []
        self.gaps: dict[int, Reference] = {}
        self.strings: list[str] = []
        self.foreign: set[str] = set()
        self.root = self.scope = _Scope("module", None)
        self.hook = self.wordless = self.annotation = False
        self.tries = 0

    def definition(self, extra: Sequence[Reference] = ()) -> Definition:
        """What was written, as a definition that also refers to `extra`."""
        for index, name, attributes in self.root.pending:
            self.place(index, self.module.resolve(name, attributes))
        references = [*(self.gaps[index] for index in sorted(self.gaps)), *extra]
        foreign = "\n".join(self.foreign)
        if DYNAMIC.search(foreign):
            references.append(Reference(self.module, WHOLE))
        if FILES.search(foreign):
            self.out += self.module.data_files(self.strings)
        looks_up = "importlib.metadata.entry_points" in self.foreign or any(
            each.name in each.module.lookups for each in references
        )
        text = "\x1f".join(self.out).encode()
        return Definition(hashlib.sha256(text).hexdigest(), tuple(references), tuple(self.strings), self.hook, looks_up)

    def place(self, index: int, found: Resolved) -> None:
        """Put a resolved name into the text."""
        if isinstance(found, str):
            self.out[index] = found
            self.foreign.add(found[1:])
        else:
            self.gaps[index] = found[0]
            self.out[index] = ".".join([GAP, *found[1]])

    def imported(self, target: Import) -> None:
        """What an import leads to."""
        self.out.append("")
        self.place(len(self.out) - 1, self.module.target(target))

    def write(self, value: object) -> None:
        """A node, a list of nodes or a plain value."""
        WRITERS[value.__class__](self, value)

    def sequence(self, nodes: list[object]) -> None:
        """A list of nodes."""
        self.out.append("[")
        for each in nodes:
            WRITERS[each.__class__](self, each)
        self.out.append("]")

    def plain(self, value: object) -> None:
        """A number, a text or nothing."""
        self.out.append("-" if value is None else ascii(value))

    def generic(self, node: ast.AST) -> None:
        """A node by its class and its fields; what is empty is left out, so that versions of Python agree."""
        out = self.out
        out.append(f"({node.__class__.__name__}")
        for field in _fields(cast(type, node.__class__)):
            value = getattr(node, field, None)
            if value is None:
                continue
            if value.__class__ is list:
                if value and isinstance(value[0], ast.stmt):
                    value = [each for each in value if self.counts(each)]
                if not value:
                    continue
            out.append(field)
            WRITERS[value.__class__](self, value)
        out.append(")")

    def counts(self, node: ast.stmt) -> bool:
        """If a statement is more than a docstring, a progress message or an import."""
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                return False
            return not (isinstance(node.value, ast.Call) and self._is_message(node.value.func))
        if isinstance(node, ast.Import | ast.ImportFrom) and self.scope.kind != "module" and not self.tries:
            self.import_(node)
            return False
        return not isinstance(node, ast.Pass)

    def _is_message(self, function: ast.expr) -> bool:
        root, attributes = chain(function)
        if not isinstance(root, ast.Name):
            return False
        scope: _Scope | None = self.scope
        while scope is not None:
            if root.id in scope.imports:
                found = self.module.target(scope.imports[root.id], attributes)
                break
            if root.id in scope.bound:
                return False
            scope = scope.outer
        else:
            found = self.module.resolve(root.id, attributes)
        return not isinstance(found, str) and not found[1] and found[0].name in found[0].module.messages

    def name(self, name: str, attributes: tuple[str, ...] = (), *, binds: bool = False) -> None:
        """A name with the attributes that follow."""
        scope, index = self.scope, len(self.out)
        self.out.append(".".join([name, *attributes]) if attributes else name)
        if attributes and "__subclasses__" in attributes:
            self.hook = True
        if binds and scope is not self.root and name not in scope.elsewhere:
            scope.bound.add(name)
        if scope.kind == "class":
            if name in scope.imports:
                return self.place(index, self.module.target(scope.imports[name], attributes))
            if name in scope.bound:
                return None
            scope = scope.enclosing
        if name not in scope.bound or name in scope.imports:
            scope.pending.append((index, name, attributes))
        return None

    def enter(self, kind: Literal["class", "function", "comprehension"]) -> _Scope:
        """A new scope within the present one."""
        self.scope = _Scope(kind, self.scope)
        return self.scope

    def leave(self) -> None:
        """Settle the names of the present scope, and go on in the one around it."""
        scope = self.scope
        for index, name, attributes in scope.pending:
            if name in scope.imports:
                self.place(index, self.module.target(scope.imports[name], attributes))
            elif name not in scope.bound:
                beyond = self.root if scope.elsewhere.get(name) else scope.enclosing
                beyond.pending.append((index, name, attributes))
        assert scope.outer is not None
        self.scope = scope.outer

    def import_(self, node: ast.Import | ast.ImportFrom) -> None:
        """An import within a statement; its target is written where it may fail or bind a name of the module."""
        for name, target in self.module.import_targets(node):
            if self.scope.kind == "module":
                self.name(name, binds=True)
            else:
                self.scope.bound.add(name)
                self.scope.imports[name] = target
            if self.scope.kind == "module" or self.tries:
                self.imported(target)

    def try_(self, node: ast.Try) -> None:
        """Imports that may fail count."""
        self.tries += 1
        self.generic(node)
        self.tries -= 1

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A function: decorators, defaults and annotations belong to the scope around it."""
        self.out.append(f"({type(node).__name__}")
        self.write(node.decorator_list)
        self.write(node.args)
        if node.returns is not None:
            self.out.append("->")
            self.annotated(node.returns)
        self.name(node.name, binds=True)
        self._body(node.args, node.body)

    def lambda_(self, node: ast.Lambda) -> None:
        """A lambda."""
        self.out.append("(Lambda")
        self.write(node.args)
        self._body(node.args, node.body)

    def _body(self, arguments: ast.arguments, body: list[ast.stmt] | ast.expr) -> None:
        scope, tries, self.tries = self.enter("function"), self.tries, 0
        each = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        scope.bound |= {argument.arg for argument in each if argument is not None}
        self.write([each for each in body if self.counts(each)] if isinstance(body, list) else body)
        self.leave()
        self.tries = tries

    def class_(self, node: ast.ClassDef) -> None:
        """A class, without columns of metrics and pictures of evaluators."""
        self.out.append("(ClassDef")
        for field in (node.decorator_list, node.bases, node.keywords):
            self.write(field)
        names = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        metaclasses = [ast.unparse(each.value) for each in node.keywords if each.arg == "metaclass"]
        self.hook |= "__init_subclass__" in names or any(not each.endswith("ABCMeta") for each in metaclasses)
        evaluator = any(
            isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == "evidence" for each in node.body
        )
        self.name(node.name, binds=True)
        self.enter("class")
        self.write([each for each in node.body if self.counts(each) and not _is_display(each, evaluator=evaluator)])
        self.leave()

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        """A comprehension: its first iterable belongs to the scope around it."""
        self.out.append(f"({type(node).__name__}")
        self.write(node.generators[0].iter)
        self.enter("comprehension")
        for number, each in enumerate(node.generators):
            if number:
                self.write(each.iter)
            self.write(each.target)
            self.write(each.ifs)
            self.write(each.is_async)
        self.write([node.key, node.value] if isinstance(node, ast.DictComp) else node.elt)
        self.leave()

    def walrus(self, node: ast.NamedExpr) -> None:
        """An assignment within an expression binds beyond comprehensions."""
        self.out.append("(NamedExpr")
        self.write(node.value)
        scope = self.scope
        while scope.kind == "comprehension" and scope.outer is not None:
            scope = scope.outer
        if scope is not self.root and node.target.id not in scope.elsewhere:
            scope.bound.add(node.target.id)
        self.name(node.target.id)

    def assignment(self, node: ast.AnnAssign) -> None:
        """An annotated assignment; in a class, without a value it binds nothing."""
        self.out.append("(AnnAssign")
        self.annotated(node.annotation)
        self.write(node.value)
        if node.value is None and self.scope.kind == "class" and isinstance(node.target, ast.Name):
            self.out.append(node.target.id)
        else:
            self.write(node.target)

    def argument(self, node: ast.arg) -> None:
        """A parameter."""
        self.out.append(node.arg)
        if node.annotation is not None:
            self.out.append(":")
            self.annotated(node.annotation)

    def annotated(self, node: ast.expr) -> None:
        """A type, which may be written as a string."""
        self.annotation, before = True, self.annotation
        self.write(node)
        self.annotation = before

    def subscript(self, node: ast.Subscript) -> None:
        """Strings of `Literal` and `Annotated` are no types."""
        before, words = self.annotation, ast.unparse(node.value) if self.annotation else ""
        self.annotation = before and words.rpartition(".")[2] not in {"Literal", "Annotated"}
        self.generic(node)
        self.annotation = before

    def name_node(self, node: ast.Name) -> None:
        """A name."""
        self.name(node.id, binds=not isinstance(node.ctx, ast.Load))

    def attribute(self, node: ast.Attribute) -> None:
        """A chain of attributes: what it leads to, if it begins with a module."""
        root, attributes = chain(node)
        if isinstance(root, ast.Name):
            self.name(root.id, attributes)
        else:
            self.hook |= "__subclasses__" in attributes
            self.write(root)
            self.out.append("." + ".".join(attributes))

    def constant(self, node: ast.Constant) -> None:
        """A constant; a string may name a module or a definition of the project."""
        value = node.value
        if not isinstance(value, str):
            self.out.append(ascii(value))
        elif self.wordless:
            self.out.append("''")
        elif self.annotation and (parsed := _type(value)) is not None:
            self.write(parsed)
        else:
            self.strings.append(value)
            self.out.append(ascii(value))
            if (target := self.module.named(value)) is not None:
                self.place(len(self.out) - 1, (target, ()))

    def joined(self, node: ast.JoinedStr) -> None:
        """An f-string; neighbouring constants are one, as versions of Python differ."""
        if self.wordless:
            self.out.append("''")
            return
        self.out.append("(JoinedStr")
        text = ""
        for each in node.values:
            if isinstance(each, ast.Constant):
                text += str(each.value)
                continue
            self.strings.append(text)
            self.out.append(ascii(text))
            self.generic(each)
            text = ""
        self.strings.append(text)
        self.out += [ascii(text), ")"]

    def raise_(self, node: ast.Raise) -> None:
        """The words of an error do not count."""
        self.wordless, before = True, self.wordless
        self.generic(node)
        self.wordless = before

    def declaration(self, node: ast.Global | ast.Nonlocal) -> None:
        """Names of an outer scope."""
        for name in node.names:
            self.scope.elsewhere[name] = isinstance(node, ast.Global)
        self.out.append(f"({type(node).__name__}")

    def binding(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> None:
        """A node that binds a name which it holds as text."""
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None and self.scope is not self.root:
            self.scope.bound.add(name)
        self.generic(node)


class _Writers(dict[type, Callable[..., None]]):
    def __missing__(self, cls: type) -> Callable[..., None]:
        self[cls] = Writer.generic if issubclass(cls, ast.AST) else Writer.plain
        return self[cls]


WRITERS = _Writers({
    ast.AnnAssign: Writer.assignment, ast.AsyncFunctionDef: Writer.function, ast.Attribute: Writer.attribute,
    ast.ClassDef: Writer.class_, ast.Constant: Writer.constant, ast.DictComp: Writer.comprehension,
    ast.ExceptHandler: Writer.binding, ast.FunctionDef: Writer.function, ast.GeneratorExp: Writer.comprehension,
    ast.Global: Writer.declaration, ast.Import: Writer.import_, ast.ImportFrom: Writer.import_,
    ast.JoinedStr: Writer.joined, ast.Lambda: Writer.lambda_, ast.ListComp: Writer.comprehension,
    ast.MatchAs: Writer.binding, ast.MatchMapping: Writer.binding, ast.MatchStar: Writer.binding,
    ast.Name: Writer.name_node, ast.NamedExpr: Writer.walrus, ast.Nonlocal: Writer.declaration,
    ast.Raise: Writer.raise_, ast.SetComp: Writer.comprehension, ast.Subscript: Writer.subscript, ast.Try: Writer.try_,
    ast.TryStar: Writer.try_, ast.arg: Writer.argument, list: Writer.sequence,
})  # fmt: skip


@cache
def _fields(cls: type) -> tuple[str, ...]:
    names = cast("type[ast.AST]", cls)._fields
    fields = [name for name in names if name not in POSITIONS]
    return tuple(sorted(fields, key=lambda name: name != FIRST.get(cls)))


@cache
def _type(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _is_display(node: ast.stmt, *, evaluator: bool) -> bool:
    """If a statement of a class is `column = Column(...)` or an evaluator's method that draws."""
    if isinstance(node, ast.FunctionDef):
        return evaluator and node.name in DISPLAYED
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "Column"


@cache
def definition(reference: Reference) -> Definition:
    """The normal form of a name's definition; of `WHOLE`; of `#N`, the statement N that acts at import."""
    module, name = reference
    if name == WHOLE:
        targets = [module.resolve(each) for each in module.bindings]
        references = {each[0] for each in targets if not isinstance(each, str)} - {reference}
        references |= {Reference(module, f"#{number}") for number in range(len(module.acting))}
        references |= {Reference(each, WHOLE) for each in module.stars}
        ordered = sorted(
            references,  # names decide between definitions that are alike, so that every process orders them alike
            key=lambda each: ("" if each.name == WHOLE else definition(each).digest, each.name, each.module.name),
        )
        return Definition(WHOLE, tuple(ordered))
    writer = Writer(module)
    for node in [module.acting[int(name[1:])]] if name.startswith("#") else module.bindings[name]:
        if isinstance(node, Import):
            writer.imported(node)
        else:
            writer.write(node)
    return writer.definition([Reference(each, WHOLE) for each in module.stars])
