"""Mutants that no test notices because they decide the same, each with why.

Named as `tests.mutation.run` prints them: what is there, and what a mutant has instead.
"""

from __future__ import annotations

_SAME_MEMORY = "with __dict__ an instance takes more memory, and is the same value"
_NEVER_NEGATIVE = "bits are non-negative, and so is what is left of them"

LABEL = {
    "if not (digits.isascii() and digits.isdigit() and len(digits) <= 19): -> "
    "if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):": (
        "a number of 20 digits is outside the range of a word, which is looked at next"
    ),
    "return word - (1 << WORD_BITS) if word & _SIGN else word -> "
    "return word - (1 << WORD_BITS) if word // _SIGN else word": (
        "a word has 64 bits, so it is at least 2**63 exactly where its highest bit is set"
    ),
    "return self.bits & ~other.bits == 0 -> return self.bits & ~other.bits <= 0": _NEVER_NEGATIVE,
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=True, slots=False)": _SAME_MEMORY,
}

CLEARANCE = {
    "return label is not None and label.bits & ~self.bits == 0 -> "
    "return label is not None and label.bits & ~self.bits <= 0": _NEVER_NEGATIVE,
    "others_held = label.bits & ~sources.bits & ~clearance.bits == 0 -> "
    "others_held = label.bits & ~sources.bits & ~clearance.bits <= 0": _NEVER_NEGATIVE,
    "return others_held and (own_sources == 0 or own_sources & clearance.bits != 0) -> "
    "return others_held and (own_sources <= 0 or own_sources & clearance.bits != 0)": (
        _NEVER_NEGATIVE
    ),
    "return others_held and (own_sources == 0 or own_sources & clearance.bits != 0) -> "
    "return others_held and (own_sources == 0 or own_sources & clearance.bits > 0)": (
        _NEVER_NEGATIVE
    ),
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=True, slots=False)": _SAME_MEMORY,
}

_ONE_EACH = "each member of an enumeration is there once, so equal is identical"
_LAST_PERMISSION = "VIEW OBJECT is the last of all permissions in the order of texts"
_LAST_KIND = '"system" is the last of all kinds, and of all namespaces, in the order of texts'
_HOW_MANY = "only how the categories are fetched depends on it: the answer is cut all the same"

_NAMED = (
    "if bits is not None and len(bits) <= _MAX_NAMED_BITS: -> if bits is not None and len(bits)"
)
_IS_SYSTEM = "if kind is ObjectKind.SYSTEM and permission is Permission.VIEW_OBJECT: -> if kind"
_LOOKS = "looks = permission is Permission.VIEW_OBJECT -> looks = permission"
_INCLUDES = (
    'includes = "" if held is permission else f", which includes {permission}" -> includes = ""'
)
_SENDER = (
    "sender = subject.sends_to.get(target.id) if held is Permission.READ_AGGREGATE else None -> "
    "sender = subject.sends_to.get(target.id) if held"
)
_GIVES, _KEPT = "Grant.permission.in_(entry.given_by", "entry.kept_from_senders),"

_LEVELS = "clearance = Clearance(held.bits"
_OTHER_KINDS = "what roles give and what a level gives are other categories, so no bit is in both"

AUTHORIZER = {
    **{
        f"{_LEVELS} | subject.level.bits) -> {_LEVELS} {operator} subject.level.bits)": _OTHER_KINDS
        for operator in ("+", "^")
    },
    "Grant.permission == Permission.VIEW_OBJECT, Grant.role_id.in_(_ROLES) -> "
    "Grant.permission >= Permission.VIEW_OBJECT, Grant.role_id.in_(_ROLES)": _LAST_PERMISSION,
    "Object.kind == ObjectKind.SYSTEM, -> Object.kind >= ObjectKind.SYSTEM,": _LAST_KIND,
    "_SYSTEM = select(Object).where(Object.namespace == Namespace.SYSTEM, "
    "Object.removed_at.is_(None)) -> _SYSTEM = select(Object).where(Object.namespace >= "
    "Namespace.SYSTEM, Object.removed_at.is_(None))": _LAST_KIND,
    'return SYSTEM_NAME if target.kind == ObjectKind.SYSTEM else f"{target.kind} {target.name}" -> '
    'return SYSTEM_NAME if target.kind >= ObjectKind.SYSTEM else f"{target.kind} {target.name}"': (
        _LAST_KIND
    ),
    "_MAX_NAMED_BITS = 500 -> _MAX_NAMED_BITS = 499": _HOW_MANY,
    "_MAX_NAMED_BITS = 500 -> _MAX_NAMED_BITS = 501": _HOW_MANY,
    **{
        f"{_NAMED} {operator} _MAX_NAMED_BITS:": _HOW_MANY
        for operator in ("!=", "<", "==", ">", ">=", "is", "is not")
    },
    f"{_IS_SYSTEM} == ObjectKind.SYSTEM and permission is Permission.VIEW_OBJECT:": _ONE_EACH,
    f"{_IS_SYSTEM} >= ObjectKind.SYSTEM and permission is Permission.VIEW_OBJECT:": _LAST_KIND,
    f"{_IS_SYSTEM} is ObjectKind.SYSTEM and permission == Permission.VIEW_OBJECT:": _ONE_EACH,
    f"{_IS_SYSTEM} is ObjectKind.SYSTEM and permission >= Permission.VIEW_OBJECT:": (
        _LAST_PERMISSION
    ),
    f'{_INCLUDES} if held <= permission else f", which includes {{permission}}"': (
        "a grant includes another permission only where READ TUPLE is held for READ AGGREGATE"
    ),
    f'{_INCLUDES} if held == permission else f", which includes {{permission}}"': _ONE_EACH,
    f"{_SENDER} == Permission.READ_AGGREGATE else None": _ONE_EACH,
    f"{_GIVES} - {_KEPT} -> {_GIVES} ^ {_KEPT}": (
        "what is kept from senders is among what gives the category (test_category_kind.py)"
    ),
    f"{_LOOKS} == Permission.VIEW_OBJECT": _ONE_EACH,
    f"{_LOOKS} >= Permission.VIEW_OBJECT": _LAST_PERMISSION,
    f"{_LOOKS} > Permission.VIEW_OBJECT": "VIEW OBJECT is then decided twice, both times the same",
}

_AS_MANY = (
    "the plain names among the keys are the declared ones, so there are at least as many keys, and "
    "a query has few enough for equal numbers to be identical"
)
_LENGTHS = "and len(aggregate.keys) == len(declared.keys) -> and len(aggregate.keys)"

_LATER_EMISSION = "of the two emissions, updates has the later name"
_UPDATES = "if found is None or emission is Emission.UPDATES: -> if found is None or emission"
REACH = {
    f"{_UPDATES} == Emission.UPDATES:": _ONE_EACH,
    f"{_UPDATES} >= Emission.UPDATES:": _LATER_EMISSION,
    f"{_LENGTHS} <= len(declared.keys)": _AS_MANY,
    f"{_LENGTHS} is len(declared.keys)": _AS_MANY,
}

DELIVERY = {
    "return all(any(one.bits & ~other.bits == 0 for other in others) for one in alone) -> "
    "return all(any(one.bits & ~other.bits <= 0 for other in others) for one in alone)": (
        _NEVER_NEGATIVE
    ),
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=True, slots=False)": _SAME_MEMORY,
}

_GIVES_UPDATES, _OR_UPSERTS = "return plan.emission", "Emission.UPDATES or bool(upsert_keys(plan))"
DELIVERY_CLASSES = {
    f"{_GIVES_UPDATES} is {_OR_UPSERTS} -> {_GIVES_UPDATES} {operator} {_OR_UPSERTS}": why
    for operator, why in (("==", _ONE_EACH), (">=", _LATER_EMISSION))
}

_OF_SEMANTICS = "left = [each for each in held if each.delivery.weak"
HELD_TOPICS = {
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=True, slots=False)": _SAME_MEMORY,
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=False, slots=True)": (
        "nothing changes such a value, and nothing looks one up by it"
    ),
    f"{_OF_SEMANTICS} == rights.weak] -> {_OF_SEMANTICS} is rights.weak]": (
        "there is one True and one False"
    ),
    f"{_OF_SEMANTICS} == rights.weak] -> {_OF_SEMANTICS} >= rights.weak]": (
        "a weak topic is not within strong rights, so it is cut before"
    ),
}

_BY_NAME = "all calls give the last argument by its name, and the others by their places"
_NEW_CLASS = "self, output: Object, delivery: Delivery,"
ACCESS_TOPICS = {
    "*, -> /,": _BY_NAME,
    f"{_NEW_CLASS} *, backfills: bool = False -> {_NEW_CLASS} /, backfills: bool = False": _BY_NAME,
}

_LAST_ACCESS = "of the kinds of access, send has the last name, and quarantine the last but one"
_OWNS, _ON = "key = (_rights(subject), subject.user_id", "obj.owner_id, permission, obj.id)"
_OF_MEMBERS = "return and_(Access.kind"
_TO_OUTPUT = "AccessKind.OUTPUT, Access.user_id.in_(members_of(change, role_id)))"
_SHOWN, _OR_PUBLIC = "shown = clearance.cut_to(output.reach).bits", "or output.relation.public"
_WITHIN_ANOTHER = "what a role without any right sees is within what another sees, and left out"
_WIDER, _IN_FOUND = "if not any(each != other and each.bits & ~other.bits", "for other in found)"
SETTLEMENT = {
    "if obj.kind == ObjectKind.OUTPUT: -> if obj.kind <= ObjectKind.OUTPUT:": (
        "an access is to an output or to a stream, and output has the earlier name"
    ),
    "SenderRow.state == SenderState.ACTIVE, -> SenderRow.state <= SenderState.ACTIVE,": (
        "of the states of a sender, active has the first name"
    ),
    f"{_OF_MEMBERS} == {_TO_OUTPUT} -> {_OF_MEMBERS} <= {_TO_OUTPUT}": (
        "of the kinds of access, output has the first name"
    ),
    "empty = own.bits == 0 and not output.relation.public -> "
    "empty = own.bits <= 0 and not output.relation.public": _NEVER_NEGATIVE,
    "ways = self._ways(subject, output) if output.exact and seen else () -> "
    "ways = self._ways(subject, output) if output.exact or seen else ()": (
        "only what is exact and seen makes use of them"
    ),
    "return Delivery(together, ways=ways if len(ways) > 1 else ()) -> "
    "return Delivery(together, ways=ways if len(ways) != 1 else ())": "there is one way at least",
    f"{_SHOWN} != 0 {_OR_PUBLIC} -> {_SHOWN} != -1 {_OR_PUBLIC}": _WITHIN_ANOTHER,
    f"{_SHOWN} != 0 {_OR_PUBLIC} -> {_SHOWN} >= 0 {_OR_PUBLIC}": _WITHIN_ANOTHER,
    f"{_SHOWN} != 0 {_OR_PUBLIC} -> {_SHOWN} > 0 {_OR_PUBLIC}": _NEVER_NEGATIVE,
    f"{_WIDER} == 0 {_IN_FOUND} -> {_WIDER} <= 0 {_IN_FOUND}": _NEVER_NEGATIVE,
    f"{_WIDER} == 0 {_IN_FOUND} -> {_WIDER.replace('!=', 'is not')} == 0 {_IN_FOUND}": (
        "each is there once, so equal is identical"
    ),
    **{
        f"elif kind is AccessKind.{kind}: -> elif kind {operator} AccessKind.{kind}:": why
        for kind in ("SEND", "QUARANTINE")
        for operator, why in (("==", _ONE_EACH), (">=", _LAST_ACCESS))
    },
    "for access, subject in zip(accesses, subjects, strict=True): -> "
    "for access, subject in zip(accesses, subjects, strict=False):": (
        "there is one subject for each access"
    ),
    "return {role.id for role in access.roles} != subject.active_role_ids -> "
    "return {role.id for role in access.roles} > subject.active_role_ids": (
        "an access has no active role beside those that it was made with"
    ),
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=True, slots=False)": _SAME_MEMORY,
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=False, slots=True)": (
        "nothing changes such a value, and nothing looks one up by it"
    ),
}

SIGHT = {
    f"{_OWNS} == {_ON} -> {_OWNS} != {_ON}": (
        "it tells the owner from all others; which of the two is called true does not matter"
    ),
    "if obj.kind == ObjectKind.STREAM: -> if obj.kind >= ObjectKind.STREAM:": (
        "an access is to an output or to a stream, and stream has the later name"
    ),
}

_NOT_GRANTED = "nobody is granted a clause, so it is not among the rights"
_LEFT_RIGHTS = "return Clearance((rights.bits & ~self._all_roles.bits)"
ROLE_CLAUSES = {
    f"{_LEFT_RIGHTS} | held.bits) -> {_LEFT_RIGHTS} + held.bits)": _NOT_GRANTED,
    f"{_LEFT_RIGHTS} | held.bits) -> {_LEFT_RIGHTS} ^ held.bits)": _NOT_GRANTED,
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=True, slots=False)": _SAME_MEMORY,
    "@dataclass(frozen=True, slots=True) -> @dataclass(frozen=False, slots=True)": (
        "nothing changes such a value, and nothing looks one up by it"
    ),
}

_ONE_PART = "a text of one word is its own first part, and one with more parts is NULL in both ways"
_ALL_PARTS = "with each limit that is not positive, Spark splits everywhere and keeps all parts"
_TWICE = "what is combined with itself stays the same"
_PUBLIC = "plain_public = relation.public and relation.kind"
_SPLIT = 'parts = fn.split(text, ",",'
LAB = {
    "if count == 1: -> if count == 0:": _ONE_PART,
    "if count == 1: -> if count < 1:": _ONE_PART,
    "if count == 1: -> if count <= 1:": "there is one word at least",
    f"{_SPLIT} -1) -> {_SPLIT} - 2)": _ALL_PARTS,
    f"{_SPLIT} -1) -> {_SPLIT} - 0)": _ALL_PARTS,
    f"{_SPLIT} -1) -> {_SPLIT} ~1)": _ALL_PARTS,
    f"{_PUBLIC} is RelationKind.STREAM -> {_PUBLIC} == RelationKind.STREAM": _ONE_EACH,
    f"{_PUBLIC} is RelationKind.STREAM -> {_PUBLIC} >= RelationKind.STREAM": (
        "of the kinds of relations, stream has the last name"
    ),
    "for index in range(1, len(words)): -> for index in range( 0, len(words)):": _TWICE,
    "for condition in conditions[1:]: -> for condition in conditions[ 0:]:": _TWICE,
}

EQUIVALENT = {
    "catalog/label.py": LABEL,
    "catalog/clearance.py": CLEARANCE,
    "catalog/authorizer.py": AUTHORIZER,
    "catalog/reach.py": REACH,
    "catalog/delivery.py": DELIVERY,
    "catalog/delivery_classes.py": DELIVERY_CLASSES,
    "secadmin/control/access_topics.py": ACCESS_TOPICS,
    "secadmin/control/held_topics.py": HELD_TOPICS,
    "secadmin/control/settlement.py": SETTLEMENT,
    "secadmin/control/sight.py": SIGHT,
    "catalog/role_clauses.py": ROLE_CLAUSES,
    "secfilter/lab.py": LAB,
}
