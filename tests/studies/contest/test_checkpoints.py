"""Checkpoints and cosignatures: forms that other programs verify, who counts, and what is refused."""

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from cleanset.cli import app
from cleanset.errors import CleansetError
from cleanset.sets.archive import SignatureError
from cleanset.studies.contest.checkpoints import (
    COSIGNATURE,
    SIGNED_NOTE,
    MerkleTree,
    NoteParts,
    check_cosignature,
    check_kept,
    cosignature_line,
    key_id,
    last_checkpoint,
    note,
    signature_line,
    verifier_key,
    verifier_keys,
)
from cleanset.studies.contest.cosigning import cosign_checkpoint
from cleanset.studies.contest.entering import check, enter
from cleanset.studies.contest.log import read
from cleanset.studies.contest.rules import parse_instant
from cleanset.studies.contest.signatures import check_raw, raw_signature
from cleanset.studies.contest.standing import cosigned_by_few, standing
from tests.studies.contest.made import day
from tests.studies.contest.notes import (
    consistency_proof,
    is_consistent,
    line_of,
    root_hash,
    verified,
)
from tests.studies.contest.on_disk import OnDisk, forget_all, key, png, private, public

COSIGNED = "2026-11-08T12:00:00Z"
EXAMPLE = (
    "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
    "This is an example message.\n",
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=",
)
"""Key, text and signature in C2SP's signed-note."""
GO = (
    "PeterNeumann",
    "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz",
    "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n",
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=",
)
"""Name, private key, verifier key, text and signature in the documentation of golang.org/x/mod/sumdb/note."""
LOG_OF_CERTIFICATES = (
    "arche2025h1.staging.ct.transparency.dev\n1432088532\nU7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=\n"
)
BY_THE_LOG = (
    "arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f",
    "— arche2025h1.staging.ct.transparency.dev "
    "ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3NygNI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=",
)
BY_A_WITNESS = (
    "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2",
    "— remora.n621.de "
    "2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==",
)
"""A checkpoint of a public log of certificates, and one of its witnesses' cosignatures, of the second 1779573024."""


def ssh_key(material: bytes) -> str:
    """A public key of 32 bytes as OpenSSH writes it."""
    blob = b"\0\0\0\x0bssh-ed25519\0\0\0 " + material
    return f"ssh-ed25519 {base64.b64encode(blob).decode()}"


def material_of(vkey: str) -> bytes:
    return base64.b64decode(vkey.split("+", 2)[2])


def test_the_published_examples() -> None:
    """Keys, key IDs, lines and signatures of C2SP, of Go, and of a public log and its witness."""
    name, secret, vkey, text, line = GO
    signer = Ed25519PrivateKey.from_private_bytes(base64.b64decode(secret)[1:])
    own = signer.public_key().public_bytes_raw()
    assert signature_line(name, SIGNED_NOTE, own, signer.sign(text.encode())) == line
    assert verifier_key(name, SIGNED_NOTE, ssh_key(own)) == vkey
    example, message, signature = EXAMPLE
    given = base64.b64decode(signature.split(" ")[2])
    assert key_id("example.com/foo", SIGNED_NOTE, material_of(example)[1:]) == given[:4] == bytes.fromhex("530d903a")
    check_raw(message.encode(), given[4:], ssh_key(material_of(example)[1:]))
    vkey, cosignature = BY_A_WITNESS
    witness = ssh_key(material_of(vkey)[1:])
    assert verifier_key("remora.n621.de", COSIGNATURE, witness) == vkey
    assert check_cosignature(cosignature, LOG_OF_CERTIFICATES, "remora.n621.de", witness) == 1_779_573_024
    for changed in (LOG_OF_CERTIFICATES.replace("1432088532", "1432088533"), LOG_OF_CERTIFICATES[:-1]):
        with pytest.raises(SignatureError, match="not valid"):
            check_cosignature(cosignature, changed, "remora.n621.de", witness)
    whole = note(LOG_OF_CERTIFICATES, [BY_THE_LOG[1], cosignature])
    assert NoteParts.of(whole) == (LOG_OF_CERTIFICATES, [BY_THE_LOG[1], cosignature])
    # the verifier of these tests takes them, too, so that it may judge the contest's own
    found = verified(whole.encode(), [BY_THE_LOG[0], vkey])
    assert found == {"arche2025h1.staging.ct.transparency.dev": None, "remora.n621.de": 1_779_573_024}
    with pytest.raises(ValueError, match="PeterNeumann"):
        verified(f"{text.upper()}\n{line}\n".encode(), [GO[2]])


LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""The trees of the tests of Certificate Transparency: leaves in hex, and the root of the first one, two, …"""


def test_the_root_hash() -> None:
    tree = MerkleTree()
    assert tree.root().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    for size, (leaf, root) in enumerate(zip(LEAVES, ROOTS, strict=True), start=1):
        tree.add(bytes.fromhex(leaf).decode())
        assert tree.root().hex() == root
        assert root_hash([bytes.fromhex(each) for each in LEAVES[:size]]).hex() == root
    texts = [f"line {number} é" for number in range(70)]
    tree = MerkleTree()
    for size, text in enumerate(texts, start=1):
        tree.add(text)
        assert tree.root() == root_hash([each.encode() for each in texts[:size]]), size
        assert tree.size == size


def test_a_checkpoint_verified_by_another_program(made: OnDisk) -> None:
    """With the lines of the log and the printed keys alone; a later one is proved to go on after it."""
    made.enter(made.mail("s", {"a.png": png((0, 0, 200))}, team="green"), at="2026-11-09T12:00:00Z")
    before = checkpoint(made)
    made.enter(at="2026-11-13T20:00:00Z", publish=True)
    assert verified(before.encode(), keys(made)).keys() == {origin(made)}
    sizes = []
    for each in (before, checkpoint(made)):
        name, size, root = each.split("\n")[:3]
        leaves = made.entries().encode().split(b"\n")[: int(size)]
        assert name == origin(made)
        assert base64.b64decode(root) == root_hash(leaves)
        sizes.append((int(size), base64.b64decode(root)))
    assert [size for size, _ in sizes] == [6, 12]
    proof = consistency_proof(leaves, 6)
    assert is_consistent(sizes[0], sizes[1], proof)
    assert not is_consistent((6, bytes(32)), sizes[1], proof)


def origin(made: OnDisk) -> str:
    return f"cleanset-contest/{read(made.folder)[0].digest}"


def checkpoint(made: OnDisk) -> str:
    return last_checkpoint(read(made.folder))


def keys(made: OnDisk) -> list[str]:
    return verifier_keys(read(made.folder))


def cosigned(made: OnDisk, team: str, at: str = COSIGNED) -> Path:
    """The entry of a team's cosignature of the last checkpoint, with its signature beside it."""
    return cosign_checkpoint(made.folder, made.edition / "mail" / team, team, key(team), parse_instant(at))[0]


def enter_cosignature(made: OnDisk, path: Path, at: str = "2026-11-09T12:00:00Z") -> None:
    enter(made.folder, [path], key=key("staff"), at=parse_instant(at))


def few(made: OnDisk) -> list[str]:
    return list(cosigned_by_few(made.state().checkpoints))


FEW = "The checkpoint of 2026-11-06, of 6 lines, is cosigned by {}; expected at least 2 teams before the next one: "


def test_who_has_cosigned(made: OnDisk) -> None:
    """Two teams are enough; those of organizers and of the board count for none, and a team once."""
    expected = ["no team", "no team", "no team", "blue", "blue"]
    for team, names in zip(("staff", "union", "blue", "blue"), expected, strict=False):
        (found,) = few(made)
        assert found.startswith(FEW.format(names))
        assert found in standing(made.state(), day("2026-12-31")).notes
        assert found in check(made.folder)
        enter_cosignature(made, cosigned(made, team))
    enter_cosignature(made, cosigned(made, "green"))
    assert few(made) == []
    (found_checkpoint,) = made.state().checkpoints
    assert (str(found_checkpoint.day), found_checkpoint.size) == ("2026-11-06", 6)
    assert found_checkpoint.teams == ("blue", "green")
    # what is entered later changes no earlier day
    assert made.state("2026-11-08").checkpoints[0].teams == ()
    time = int(parse_instant(COSIGNED).timestamp())
    by_teams = {f"{origin(made)}/{team}": time for team in ("blue", "green", "staff", "union")}
    assert verified(checkpoint(made).encode(), keys(made)) == {origin(made): None, **by_teams}


def test_a_checkpoint_is_cosigned_before_the_next_one(made: OnDisk) -> None:
    enter_cosignature(made, cosigned(made, "green"))
    old = cosigned(made, "blue")
    made.enter(made.mail("s", {"a.png": png((0, 0, 200))}, team="green"), at="2026-11-09T12:00:00Z")
    made.enter(at="2026-11-13T20:00:00Z", publish=True)
    with pytest.raises(CleansetError, match=r"a cosignature of the line [0-9a-f]{12}…, which has not the last check"):
        enter_cosignature(made, old, "2026-11-14T12:00:00Z")
    first, second = few(made)
    assert first.startswith(FEW.format("green"))
    assert second.startswith("The checkpoint of 2026-11-13, of 13 lines, is cosigned by no team")
    enter_cosignature(made, cosigned(made, "blue", "2026-11-14T11:00:00Z"), "2026-11-14T12:00:00Z")
    assert [each.teams for each in made.state().checkpoints] == [("green",), ("blue",)]


@pytest.mark.parametrize(
    ("at", "entered", "message"),
    [
        ("2026-11-06T23:59:58Z", "2026-11-09T12:00:00Z", "of the second 1794009598, not between its checkpoint and"),
        ("2026-11-09T12:00:01Z", "2026-11-09T12:00:00Z", "of the second 1794225601, not between its checkpoint and"),
    ],
)
def test_the_time_of_a_cosignature(at: str, entered: str, message: str, made: OnDisk) -> None:
    with pytest.raises(CleansetError, match=message):
        enter_cosignature(made, cosigned(made, "blue", at), entered)


def test_a_cosignature_of_something_else(made: OnDisk) -> None:
    """Of another text, by another key, in another name, or in another form of base64."""
    path = cosigned(made, "blue")
    (line,) = re.findall(r'signature: "(.*)"', path.read_text())
    text = NoteParts.of(checkpoint(made)).text
    time = int(parse_instant(COSIGNED).timestamp())
    name = f"{origin(made)}/blue"
    assert line == line_of(name, 4, private("blue"), text.encode(), time)
    public_blue = private("blue").public_key().public_bytes_raw()
    by_green = private("green").sign(f"cosignature/v1\ntime {time}\n{text}".encode())
    for changed, message in (
        (line_of(name, 4, private("blue"), text.replace("\n6\n", "\n7\n").encode(), time), "not valid"),
        (line_of(name, 4, private("green"), text.encode(), time), f"not a cosignature by the key of {name}"),
        (line_of(f"{origin(made)}/green", 4, private("blue"), text.encode(), time), "not a cosignature by the key"),
        (line_of(name, 1, private("blue"), text.encode()), "not a cosignature by the key"),
        (cosignature_line(name, public_blue, time, by_green), "not valid"),
        (cosignature_line(name, public_blue, time + 1, base64.b64decode(line.split(" ")[2])[12:]), "not valid"),
        (f"{line}\n", "not a cosignature"),
        (line.replace("— ", "—  "), "not a cosignature"),
    ):
        entry = {"team": "blue", "checkpoint": read(made.folder)[6].digest, "signature": changed}
        mail = made.yaml("cosignature.yaml", {"cosignature": entry})
        with pytest.raises(CleansetError, match=message) as caught:
            made.enter(mail)
        assert "\n" not in str(caught.value)


def test_a_published_week_with_another_checkpoint(made: OnDisk) -> None:
    """Whoever signs a checkpoint of other lines, or in another name, writes no log that can be read."""
    place = next(n for n, each in enumerate(made.story) if each[1] == "publish")
    whole = read(made.folder)[place].entry.checkpoint
    text = NoteParts.of(whole).text
    for changed, message in (
        (whole.replace("\n6\n", "\n5\n"), "of another log than the 6 lines before it, whose root hash is "),
        (whole.replace("cleanset", "cleanest"), "of another log than the 6 lines before it"),
        (f"{text}\n{line_of(origin(made), 1, private('ada'), text.encode())}\n", "not by a signer"),
        (f"{text}\n{line_of(origin(made), 4, private('staff'), text.encode())}\n", "not by a signer"),
        (whole + whole.split("\n")[-2] + "\n", "not by one signer"),
        (whole[:-1], "not a signed note"),
        (text, "not a signed note"),
        ("", "not a signed note"),
    ):
        at, kind, _ = made.story[place]
        made.story[place] = at, kind, {"checkpoint": changed}
        made.write()
        with pytest.raises(CleansetError, match=f"line 6: a checkpoint {message}") as caught:
            read(made.folder)
        assert "\n" not in str(caught.value)


def test_a_void_checkpoint(made: OnDisk) -> None:
    """Of a week that was published by a wrong clock: its cosignatures count for no other one."""
    made.enter(made.mail("s", {"a.png": png((0, 0, 200))}, team="green"), at="2026-11-09T12:00:00Z")
    made.enter(at="2099-01-02T00:00:00Z", publish=True)
    enter_cosignature(made, cosigned(made, "blue", "2099-01-02T01:00:00Z"), "2099-01-02T02:00:00Z")
    wrong = len(read(made.folder)) - 2
    made.enter(made.yaml("void.yaml", {"void": {"lines": [wrong, wrong + 1], "reason": "the clock"}}))
    enter_cosignature(made, cosigned(made, "green", "2026-11-09T12:00:00Z"), "2026-11-09T12:00:00Z")
    assert [(each.size, each.teams) for each in made.state().checkpoints] == [(6, ("green",))]


def test_a_kept_checkpoint(made: OnDisk, tmp_path: Path) -> None:
    """Whoever has a checkpoint in a file sees whether a log goes on after it."""
    kept = tmp_path / "kept.txt"
    kept.write_text(checkpoint(made))
    made.enter(made.yaml("team.yaml", {"team": {"name": "pink", "key": public("pink")}}))
    assert check(made.folder, since=str(kept))
    made.changed("stake", batch="another")
    forget_all()
    with pytest.raises(CleansetError, match=r"kept\.txt: a checkpoint of 6 lines; the first 6 lines here have"):
        check(made.folder, since=str(kept))
    for text, message in (("", "not a signed note"), (EXAMPLE[1] + f"\n{EXAMPLE[2]}\n", "a checkpoint of 0 lines")):
        kept.write_text(text)
        with pytest.raises(CleansetError, match=message):
            check_kept(read(made.folder), str(kept))


def test_before_the_first_week(made: OnDisk) -> None:
    made.story = made.story[:5]
    made.write()
    for call in (lambda: cosigned(made, "blue"), lambda: checkpoint(made)):
        with pytest.raises(CleansetError, match="no week is published yet"):
            call()


def test_the_commands_of_a_team(made: OnDisk, tmp_path: Path) -> None:
    run = CliRunner()
    options = ["--contest", str(made.folder)]
    done = run.invoke(
        app,
        [
            "contest",
            "cosign",
            str(tmp_path / "mail"),
            "--name",
            "blue",
            "--key",
            str(key("blue")),
            "--at",
            COSIGNED,
            *options,
        ],
    )
    assert done.exit_code == 0, done.output
    path = Path(done.output.split("\n")[0])
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, f"{path.name}.blue.sig"]
    enter_cosignature(made, path)
    text = run.invoke(app, ["contest", "checkpoint", *options]).output
    vkeys = run.invoke(app, ["contest", "checkpoint", "--keys", *options]).output.splitlines()
    assert verified(text.encode(), vkeys).keys() == {origin(made), f"{origin(made)}/blue"}
    assert "number of teams that have cosigned it: 1." in " ".join(
        run.invoke(app, ["contest", "standing", "--on", "2026-12-31", *options]).output.split()
    )


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An SSH agent of the test's own."""
    if shutil.which("ssh-agent") is None:
        pytest.skip("needs ssh-agent")
    path = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL) as process:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
        # it answers 1 once it is there, and has no key
        while subprocess.run(["ssh-add", "-l"], capture_output=True, check=False).returncode != 1:
            assert process.poll() is None
        yield
        process.terminate()


def test_a_key_that_an_agent_holds(agent: None, tmp_path: Path) -> None:
    """By its public key, and by a private one with a passphrase."""
    secret = tmp_path / "secret"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "abcdef", "-f", str(secret)], check=True)
    for path in (secret, secret.with_suffix(".pub")):
        with pytest.raises(CleansetError, match=rf"not held by the agent; expected .*: ssh-add {secret}$"):
            raw_signature(b"text", path)
    plain = tmp_path / "plain"
    shutil.copyfile(secret, plain)
    plain.chmod(0o600)
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "abcdef", "-N", "", "-f", str(plain)], check=True)
    subprocess.run(["ssh-add", "-q", str(plain)], check=True)
    expected = raw_signature(b"text", plain)
    for path in (secret, secret.with_suffix(".pub")):
        assert raw_signature(b"text", path) == expected
    check_raw(b"text", expected.signature, secret.with_suffix(".pub").read_text())


def test_a_key_without_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(CleansetError, match="not signed by an agent"):
        raw_signature(b"text", key("blue").with_suffix(".pub"))
    ecdsa = tmp_path / "ecdsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", str(ecdsa)], check=True)
    with pytest.raises(CleansetError, match="a key of another kind; expected an ed25519 key"):
        raw_signature(b"text", ecdsa)
