"""The bodies of requests. Unknown fields are refused, and lengths are checked first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SecretStr

from catalog.conflict_class import MAX_COMPANIES
from catalog.limits import MAX_RATE
from catalog.names import MOST_ROLES
from catalog.operator_limits import Operator
from catalog.permission import ObjectKind
from catalog.record_format import TimeFormat, UnknownFields
from catalog.relation import MAX_INDEPENDENT
from catalog.time_source import TimeSource
from catalog.topic_sharing import Senders

Name = Annotated[str, Field(min_length=1, max_length=64)]
Word = Annotated[str, Field(min_length=1, max_length=80)]
TypeText = Annotated[str, Field(min_length=1, max_length=8_000)]
ConditionText = Annotated[str, Field(min_length=1, max_length=4096)]
RuleText = Annotated[str, Field(min_length=1, max_length=20_000)]
Secret = Annotated[SecretStr, Field(max_length=1024)]
HOUR_MS = 3_600_000
YEAR_MS = 366 * 24 * HOUR_MS
Duration = Annotated[int, Field(ge=0, le=YEAR_MS)]
Rate = Annotated[int, Field(ge=1, le=MAX_RATE)]
PastTime = Annotated[
    AwareDatetime,
    Field(strict=False, ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(9999, 1, 1, tzinfo=UTC)),
]


class Body(BaseModel):
    """Base of all request bodies."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LoginBody(Body):
    """A login. Without `roles`, all roles of the user are activated.

    `levels` has parts of a level by the names of conflict classes: the session reads nothing above.
    """

    user: Name
    password: Secret
    roles: list[Name] | None = Field(default=None, max_length=1000)
    levels: dict[Name, Name] | None = Field(default=None, max_length=1000)


class PasswordBody(Body):
    """A change of one's own password."""

    old: Secret
    new: Secret


class UserBody(Body):
    """A new user. Without a password, a one-time password is made."""

    name: Name
    password: Secret | None = None


class NameBody(Body):
    """A new role."""

    name: Name


class RoleBody(Body):
    """The role that the request is about."""

    role: Name


class OperatorLimitsBody(Body):
    """What a role allows in queries. null: no limit.

    `operators` are allowed; `window_ms` is the longest time for which one keeps tuples, `slide_ms`
    the shortest slide. In so many `windows` of one operator may a tuple be, and so many rows
    may a window of rows keep (`window_rows`).
    """

    operators: list[Annotated[Operator, Field(strict=False)]] | None = Field(
        default=None, max_length=len(Operator)
    )
    window_ms: int | None = Field(default=None, ge=0, le=YEAR_MS)
    slide_ms: int | None = Field(default=None, ge=1, le=YEAR_MS)
    windows: int | None = Field(default=None, ge=1, le=1_000_000)
    window_rows: int | None = Field(default=None, ge=1, le=1_000_000)


class SenderBody(Body):
    """The user that the request is about."""

    user: Name


class GrantBody(Body):
    """Permissions of a role on an object. SYSTEM has the name "system"."""

    role: Name
    permissions: list[Word] = Field(min_length=1, max_length=20)
    kind: Annotated[ObjectKind, Field(strict=False)]
    name: Name = "system"


class AttributeBody(Body):
    """An attribute of a schema."""

    name: Name
    type: TypeText
    required: bool = False


class SchemaBody(Body):
    """A new schema."""

    name: Name
    attributes: list[AttributeBody] = Field(min_length=1, max_length=200)


class SenderPolicyBody(Body):
    """The role expression of all that the caller sends."""

    expression: str = Field(max_length=1000)


class DeclaredAggregateBody(Body):
    """The aggregate through which READ AGGREGATE reads the stream.

    `minimum` is a number of independent senders.
    """

    window_ms: int = Field(ge=1, le=YEAR_MS)
    keys: list[Name] = Field(default_factory=list, max_length=20)
    functions: list[Word] = Field(min_length=1, max_length=10)
    minimum: int = Field(ge=2, le=MAX_INDEPENDENT)


class StreamBody(Body):
    """A new stream. Durations are in milliseconds, sizes in bytes, the rate in tuples a second."""

    name: Name
    schema_: Name = Field(alias="schema")
    event_time: Name | None = None
    time: Annotated[TimeSource, Field(strict=False)] = TimeSource.BROKER
    lateness_ms: Duration | None = None
    max_ahead_ms: Duration = HOUR_MS
    max_bytes: int = Field(default=65_536, ge=1, le=900_000)
    partitions: int = Field(default=1, ge=1, le=64)
    public: bool = False
    senders: Annotated[Senders, Field(strict=False)] = Senders.OWN
    time_format: Annotated[TimeFormat, Field(strict=False)] = TimeFormat.ISO
    unknown_fields: Annotated[UnknownFields, Field(strict=False)] = UnknownFields.QUARANTINE
    declared_aggregate: DeclaredAggregateBody | None = None
    label_rule: str | None = Field(default=None, min_length=1, max_length=20_000)
    company_rules: dict[Name, RuleText] = Field(default_factory=dict, max_length=20)
    floored: bool | None = None
    rate: Rate | None = None


class RateBody(Body):
    """The declared rate of the stream, in tuples a second. null: none is declared any more."""

    rate: Rate | None


class ConflictClassBody(Body):
    """A new conflict class with its companies, which compete with each other."""

    name: Name
    companies: list[Name] = Field(default_factory=list, max_length=MAX_COMPANIES)


class CompanyBody(Body):
    """A company of the conflict class."""

    company: Name


class ChoiceBody(Body):
    """The company of the conflict class that the caller chooses."""

    choice: Name


class LevelBody(Body):
    """The level of a user in a conflict class: a company, T, or _. null leaves it to the user."""

    part: Name | None


class QueryBody(Body):
    """A new query. `output` is the name of the output, if there is only one: not for `borealis`.

    With `as_roles`, the query reads its streams as these roles see them. With `accept_empty` it is
    added even if policies leave it no tuple of a stream. At a `level`, such as [Company1, _], it
    reads only what the level dominates. With `semantics` view, each subscriber gets what the query
    gives over the tuples that the subscriber may see; with isolated, each delivery class also runs
    apart. With exact, a result comes by one role of a subscriber alone.
    """

    name: Name
    language: Literal["sql", "borealis", "user-query"]
    text: str = Field(min_length=1, max_length=262_144)
    output: Name | None = None
    as_roles: list[Name] = Field(default_factory=list, max_length=MOST_ROLES)
    accept_empty: bool = False
    level: str | None = Field(default=None, min_length=1, max_length=2_000)
    semantics: Literal["strong", "view", "isolated", "exact"] | None = None


class AttributeRightBody(Body):
    """The right to an attribute. With `functions`, only these aggregates may use it."""

    name: Name
    when: ConditionText | None = None
    functions: list[Word] | None = Field(default=None, min_length=1, max_length=10)


class SmallestWindowBody(Body):
    """The smallest window and slide that a query may have."""

    size_ms: int = Field(ge=1, le=YEAR_MS)
    slide_ms: int = Field(ge=1, le=YEAR_MS)
    tumbling: bool = False


class TupleWindowBody(Body):
    """The smallest window of tuples that a query may have: its size and its slide in tuples."""

    size: int = Field(ge=2, le=10_000)
    slide: int = Field(ge=1, le=10_000)
    tumbling: bool = False


class PolicyBody(Body):
    """A new policy of a role on the stream, with the name `policy`.

    The role sees the tuples for which `rows` is true (null: all), and of them the attributes to
    which it has `rights` (without: all). With `replace`, the policy takes the place of its
    namesake.
    """

    policy: Name
    role: Name
    rows: ConditionText | None
    rights: list[AttributeRightBody] | None = Field(default=None, min_length=1, max_length=200)
    window: SmallestWindowBody | TupleWindowBody | None = None
    minimum: int = Field(default=1, ge=1, le=MAX_INDEPENDENT)
    replace: bool = False


class XacmlPolicyBody(Body):
    """An XACML 3.0 policy, or policy set, whose target names a role and a stream.

    Without a name, the policy has that of its PolicyId or PolicySetId.
    """

    xacml: str = Field(min_length=1, max_length=65_536)
    policy: Name | None = None
    replace: bool = False


class PolicyVersionBody(Body):
    """One version of a policy: the name of a stored one, an XACML text, or what it shows."""

    stored: Name | None = None
    xacml: str | None = Field(default=None, min_length=1, max_length=65_536)
    written: PolicyBody | None = None


class PolicyVersionsBody(Body):
    """Two versions of a policy; null stands for none. With a record, what is seen of it counts."""

    old_version: PolicyVersionBody | None
    new_version: PolicyVersionBody | None
    record: dict[str, Any] | None = Field(default=None, max_length=200)


class RecordBody(Body):
    """A record as a sender would send it."""

    record: dict[str, Any] = Field(max_length=200)


class SemanticsBody(Body):
    """Strong (default) or weak delivery of an output."""

    weak: bool


class SubscriptionBody(Body):
    """A new subscription. With `keep`, it does not end with the session.

    `choices` has for conflict classes the company that the caller chooses to read, for good.
    """

    keep: bool = False
    choices: dict[Name, Name] = Field(default_factory=dict, max_length=20)


class BackfillBody(Body):
    """A backfill of a subscription: results of what came `since` then. null: the earliest."""

    since: PastTime | None = None


class AccessBody(Body):
    """A new access. With `keep`, it does not end with the session."""

    keep: bool = False
