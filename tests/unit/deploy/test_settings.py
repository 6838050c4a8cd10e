"""What `deploy.settings` writes is what `catalog.settings` reads."""

import re
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.audit_key import AuditKey
from catalog.engines import all_engines
from catalog.errors import InvalidInput
from catalog.limits import Limits
from catalog.settings import ClusterSettings, Settings
from catalog.spaces import Spaces
from catalog.user_limits import UserLimits
from deploy.certificates import ensure_certificates
from deploy.credentials import ensure_credentials
from deploy.errors import DeployError
from deploy.settings import (
    Table,
    engine_settings,
    local_kafka,
    local_settings,
    merged,
    read_overrides,
    to_toml,
    write_settings,
)
from deploy.stack import last_engines, last_secadmin_port


def _local(state: Path) -> Table:
    certificates = ensure_certificates(state / "certificates")
    secadmin = ensure_credentials(state / "secrets", "secadmin")
    kafka = local_kafka("localhost:20001", "localhost:19092", certificates.ca, secadmin)
    return merged(local_settings(state, certificates, 18443, state / "jars"), {"kafka": kafka})


def test_the_catalog_reads_what_is_written(tmp_path: Path) -> None:
    state = tmp_path / 'a "quoted" \\ folder'
    settings = Settings.load(write_settings(_local(state), state / "settings.toml"))
    assert settings.catalog_url == f"sqlite:///{state}/catalog.db"
    assert settings.kafka.bootstrap == "localhost:20001"
    assert settings.kafka.users_bootstrap == "localhost:19092"
    assert settings.kafka.removes_users
    assert settings.kafka.replication == 1
    assert settings.kafka.secadmin.username == "secadmin"
    assert len(settings.kafka.ingest.password()) == 64
    assert (settings.secadmin.host, settings.secadmin.port) == ("127.0.0.1", 18443)
    assert settings.secadmin.certificate_file.exists()
    assert settings.secadmin.key_file.exists()
    assert settings.secfilter.jars == state / "jars"


def test_the_spaces_of_roles_are_read(tmp_path: Path) -> None:
    def load(engines: int, **spaces: str) -> Spaces:
        table = merged(_local(tmp_path), {"secfilter": {"engines": engines, "spaces": spaces}})
        return Settings.load(write_settings(table, tmp_path / "settings.toml")).secfilter.spaces

    assert load(1) == Spaces(1)
    spaces = load(3, DESK="query-3")
    assert (spaces.homes("DESK"), spaces.own("DESK")) == (("query-3",), "query-3")
    assert spaces.homes() == spaces.homes("BACK") == ("query-1", "query-2")
    # What has no other engine runs in the first one, so no role has it for itself.
    for engine in ("query-1", "query-4", "ingest"):
        with pytest.raises(InvalidInput, match=f"spaces: DESK = '{engine}'"):
            load(3, DESK=engine)


def test_how_many_engines_are_for_levels_is_read(tmp_path: Path) -> None:
    def load(engines: int, levels: object) -> Spaces:
        own = {"engines": engines, "level_engines": levels}
        table = merged(_local(tmp_path), {"secfilter": own})
        return Settings.load(write_settings(table, tmp_path / "settings.toml")).secfilter.spaces

    assert (load(3, 2), load(1, 0)) == (Spaces(3, {}, 2), Spaces(1))
    for engines, levels in ((2, 2), (1, 1), (3, -1), (3, "2"), (3, True)):
        with pytest.raises(InvalidInput, match="level_engines"):
            load(engines, levels)


def test_what_a_spark_cluster_needs_is_read(tmp_path: Path) -> None:
    def load(**own: str) -> ClusterSettings | None:
        table = merged(_local(tmp_path), {"secfilter": {"cluster": own}} if own else {})
        return Settings.load(write_settings(table, tmp_path / "settings.toml")).secfilter.cluster

    assert load() is None
    assert load(host="engine-1") == ClusterSettings("engine-1")
    own = load(host="engine-1", secret_file="/etc/cluster.secret", python="/opt/python")
    assert own == ClusterSettings("engine-1", Path("/etc/cluster.secret"), "/opt/python")
    with pytest.raises(InvalidInput, match="'host'"):
        load(secret_file="/etc/cluster.secret")
    with pytest.raises(InvalidInput, match=r"secfilter\.cluster: it has no secret$"):
        load(host="engine-1", secret="x")


def test_an_engine_is_told_its_own_url_of_the_catalog_alone(tmp_path: Path) -> None:
    urls = {"url": "postgresql://owner@h/c"}
    roles: Table = {name: {"url": f"postgresql://{name}@h/c"} for name in ("ingest", "query")}
    table = merged(_local(tmp_path), {"catalog": {**urls, **roles}})
    for account, engines in (("ingest", ["ingest"]), ("query", ["query-1", "probation"])):
        file = write_settings(engine_settings(table, account), tmp_path / "engine.toml")
        assert set(re.findall(r"//(\w+)@", file.read_text())) == {account}
        for engine in engines:
            assert Settings.load(file).catalog_url_of(engine) == f"postgresql://{account}@h/c"
    # Without roles, all have SecAdmin's URL.
    file = write_settings(engine_settings(_local(tmp_path), "query"), tmp_path / "engine.toml")
    assert Settings.load(file).catalog_url_of("query-1") == f"sqlite:///{tmp_path}/catalog.db"


def test_the_limits_of_rates_are_read(tmp_path: Path) -> None:
    def load(**given: int) -> Settings:
        table = merged(_local(tmp_path), {"limits": given})
        return Settings.load(write_settings(table, tmp_path / "settings.toml"))

    assert (load().limits.stream_rate, load().limits.view_rate) == (1000, 480_000)
    assert load(stream_rate=50, view_rate=9).limits == Limits(stream_rate=50, view_rate=9)
    with pytest.raises(InvalidInput, match=r"limits\.stream_rate: it is 0"):
        load(stream_rate=0)


def test_the_limits_of_a_user_are_read(tmp_path: Path) -> None:
    def load(**given: int) -> Settings:
        table = merged(_local(tmp_path), {"limits": {"user": given}})
        return Settings.load(write_settings(table, tmp_path / "settings.toml"))

    assert load().user_limits == UserLimits()
    assert load(reads=3).user_limits == UserLimits(reads=3)
    with pytest.raises(InvalidInput, match=r"limits\.user\.raeds, which does not exist"):
        load(raeds=3)


def test_engines_can_have_database_roles_of_their_own(tmp_path: Path) -> None:
    def load(**given: str) -> Settings:
        tables: Table = {name: {"url": url} for name, url in given.items()}
        table = merged(_local(tmp_path), {"catalog": tables})
        return Settings.load(write_settings(table, tmp_path / "settings.toml"))

    plain, apart = load(), load(ingest="postgresql://i@h/c", query="postgresql://q@h/c")
    for engine in all_engines(2):
        assert plain.catalog_url_of(engine) == plain.catalog_url
        role = "i" if engine == "ingest" else "q"
        assert apart.catalog_url_of(engine) == f"postgresql://{role}@h/c"
    with pytest.raises(InvalidInput, match=r"both \[catalog.ingest\] and \[catalog.query\]"):
        load(ingest="postgresql://i@h/c")


def test_secrets_are_private_and_random(tmp_path: Path) -> None:
    settings = Settings.load(write_settings(_local(tmp_path), tmp_path / "settings.toml"))
    secret = [
        tmp_path / "settings.toml",
        settings.kafka.secadmin.password_file,
        settings.kafka.ingest.password_file,
        settings.kafka.query.password_file,
        settings.secadmin.key_file,
        settings.secadmin.first_password_file,
        settings.secfilter.id_key_file,
        settings.kafka.audit.password_file,
        settings.secadmin.audit_key_file,
    ]
    assert {stat.S_IMODE(file.stat().st_mode) for file in secret} == {0o600}
    assert len({file.read_text() for file in secret}) == len(secret)
    assert len(bytes.fromhex(settings.secfilter.id_key_file.read_text())) == 32
    AuditKey.load(settings.secadmin.audit_key_file)
    assert stat.S_IMODE(settings.secadmin.audit_heads_file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(settings.secfilter.checkpoints.stat().st_mode) == 0o700


def test_secrets_stay_when_written_again(tmp_path: Path) -> None:
    _local(tmp_path)
    first = {file: file.read_text() for file in (tmp_path / "secrets").iterdir()}
    _local(tmp_path)
    assert {file: file.read_text() for file in (tmp_path / "secrets").iterdir()} == first


def test_an_operator_gives_only_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "kafka.toml"
    file.parent.mkdir()
    file.write_text(
        '[catalog]\nurl = "postgresql+psycopg://db/catalog"\n'
        '[kafka]\nbootstrap = "k1:9093,k2:9093"\nca_file = "ca.pem"\nreplication = 3\n'
        '[kafka.secadmin]\nusername = "secadmin"\npassword_file = "/run/secrets/secadmin"\n'
        '[kafka.query]\nusername = "our-queries"\npassword_file = "queries.password"\n'
        '[secfilter]\nmaster = "local[8]"\n'
        '[secfilter.options]\n"spark.driver.memory" = "4g"\n'
    )
    # Of its Kafka nothing is taken from an embedded broker.
    certificates = ensure_certificates(tmp_path / "certificates")
    base = local_settings(tmp_path, certificates, 18443, tmp_path / "jars")
    table = merged(base, read_overrides(file))
    settings = Settings.load(write_settings(table, tmp_path / "settings.toml"))
    assert settings.catalog_url == "postgresql+psycopg://db/catalog"
    assert settings.kafka.bootstrap == "k1:9093,k2:9093"
    assert settings.kafka.users_bootstrap == "k1:9093,k2:9093"
    assert not settings.kafka.removes_users
    assert settings.kafka.replication == 3
    assert settings.kafka.ca_file == file.parent / "ca.pem"
    assert settings.kafka.secadmin.username == "secadmin"
    assert settings.kafka.secadmin.password_file == Path("/run/secrets/secadmin")
    assert settings.kafka.query.password_file == file.parent / "queries.password"
    assert settings.kafka.ingest.username == "secfilter-ingest", "made, as it was not given"
    assert len(settings.kafka.ingest.password()) == 64
    assert settings.secfilter.master == "local[8]"
    assert settings.secfilter.options == {"spark.driver.memory": "4g"}
    assert settings.secadmin.port == 18443


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot read"), ("[kafka", "not TOML"), ("[catalog]\n", "lack [kafka]")],
)
def test_unusable_settings_say_what_is_wrong(
    tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "settings.toml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(DeployError, match=words.replace("[", r"\[")):
        read_overrides(file)


_KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
_VALUES = st.text(st.characters(exclude_categories=["Cs"])) | st.integers() | st.booleans()


@given(st.recursive(st.dictionaries(_KEYS, _VALUES), lambda t: st.dictionaries(_KEYS, _VALUES | t)))
def test_toml_reads_back_as_it_was(table: Table) -> None:
    assert tomllib.loads(to_toml(table)) == _without_empty(table)


def _without_empty(table: Table) -> Table:
    """A table without entries leaves no trace in the text."""
    below = {k: _without_empty(v) if isinstance(v, dict) else v for k, v in table.items()}
    return {name: value for name, value in below.items() if value != {}}


def test_each_engine_has_its_account(tmp_path: Path) -> None:
    kafka = Settings.load(write_settings(_local(tmp_path), tmp_path / "settings.toml")).kafka
    assert {name: kafka.account_of(name) for name in all_engines(2)} == {
        "ingest": kafka.ingest,
        "query-1": kafka.query,
        "query-2": kafka.query,
        "probation": kafka.query,
    }


@pytest.mark.parametrize("name", ["secadmin", "ingest", "audit"])
def test_no_two_accounts_are_one_user(tmp_path: Path, name: str) -> None:
    table = _local(tmp_path)
    user = tomllib.loads(to_toml(table))["kafka"][name]["username"]
    same = merged(table, {"kafka": {"query": {"username": user}}})
    file = write_settings(same, tmp_path / "settings.toml")
    with pytest.raises(InvalidInput, match="must be different users"):
        Settings.load(file)


def test_settings_of_one_account_for_all_engines_say_what_to_write(tmp_path: Path) -> None:
    former: Table = {"kafka": {"secfilter": {"username": "secfilter", "password_file": "p"}}}
    table = merged(_local(tmp_path), former)
    file = write_settings(table, tmp_path / "settings.toml")
    said = r"write \[kafka\.ingest\] and \[kafka\.query\] in its place"
    with pytest.raises(InvalidInput, match=said):
        Settings.load(file)
    with pytest.raises(DeployError, match=said):
        read_overrides(file)
    # An earlier version wrote it, and its users know the port.
    assert (last_secadmin_port(tmp_path), last_engines(tmp_path)) == (18443, 1)


@pytest.mark.parametrize("value", ["false", 0, 1])
def test_a_switch_that_is_neither_on_nor_off_is_refused(tmp_path: Path, value: str | int) -> None:
    table = merged(_local(tmp_path), {"kafka": {"removes_users": value}})
    file = write_settings(table, tmp_path / "settings.toml")
    with pytest.raises(InvalidInput, match="removes_users: it must be true or false"):
        Settings.load(file)
