"""Real releases: from a tar, a folder, a real HTTPS server, and a record as Zenodo's API gives it."""

import datetime
import hashlib
import ipaddress
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import cleanset
from cleanset.edition.paths import Edition
from cleanset.evaluation.sets import open_set
from cleanset.sets import publish, verify
from cleanset.sets.archive import write_tar
from cleanset.sets.fetching import releases
from cleanset.sets.fetching.repository import is_release, record_number
from tests.evaluation.compare.command import cleanset as run_cleanset
from tests.evaluation.compare.command import says
from tests.sets.conftest import FILES, trial
from tests.sets.fetching.publisher import Publisher, Web, serving
from tests.sets.fetching.test_fetch import fetch, refused, today
from tests.small_disks import small_disk_at

pytestmark = pytest.mark.server

NAME = "cleanset-standard-1.2.3"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of 127.0.0.1, signed by itself, in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "here")])
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    pem = serialization.Encoding.PEM
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(plain + built.public_bytes(pem))
    return path


@pytest.fixture
def web(publisher: Publisher, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """The remote's folder over HTTPS, which this process trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(publisher.remote, context) as found:
        monkeypatch.setattr(releases, "ZENODO_API", f"{found.url}/api/records/")
        yield found


@pytest.fixture
def tar(export: Path, publisher: Publisher) -> Path:
    """A release of the set with its images, in the folder that is served."""
    made = publish.run(export, publisher.remote / "release", True, None)
    return made.tar


def record(publisher: Publisher, web: Web, tar: Path, **changes: object) -> None:
    """Serve the record 12 with the tar, as https://zenodo.org/api/records/12 would."""
    file = {
        "key": tar.name,
        "size": tar.stat().st_size,
        "checksum": f"md5:{hashlib.md5(tar.read_bytes()).hexdigest()}",
        "links": {"self": f"{web.url}/release/{tar.name}"},
    }
    path = publisher.remote / "api" / "records" / "12"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"id": 12, "files": [{**file, **changes}]}))


def test_of_an_https_address(web: Web, tar: Path, publisher: Publisher, tmp_path: Path) -> None:
    address = f"{web.url}/release/{tar.name}"
    done = fetch(address, "--out", str(tmp_path / "out"))
    assert done.stdout == (
        f"{tmp_path}/out: 6 images of model standard of a release, checked\n{trial(tmp_path / 'out')}\n"
    )
    assert verify.run(tmp_path / "out", decode=True).problems == []
    assert done.stderr == f"{address}: as of {today()}, asked now\n"
    tar.unlink()  # no network the second time
    images = cleanset.load(address)
    assert fetch(address).stderr == (f"{address}: as of {today()}, not asked again: cleanset fetch --update does\n")
    assert [record["file"] for _, _, record in images] == FILES
    assert cleanset.table("standard", address)["file"].tolist() == FILES
    assert web.asked == [f"/release/{tar.name}"]
    assert "missing there; expected the address of a release" in refused(address, "--update")
    assert refused(address, "--rev", "v1") == (
        f"{address}: a release; expected --rev and --folder with a git repository alone"
    )
    assert refused(address, "robust") == (
        f"{images.folder}: no finished set of 'robust'; expected a role that has one: standard"
    )


@pytest.mark.parametrize("doi", ["10.5281/zenodo.12", "https://doi.org/10.5281/zenodo.12", "doi:10.5281/ZENODO.12"])
def test_of_a_doi(doi: str, web: Web, tar: Path, publisher: Publisher) -> None:
    record(publisher, web, tar)
    assert len(cleanset.load(doi)) == 6
    assert web.asked == ["/api/records/12", f"/release/{tar.name}"]
    assert len(cleanset.load("standard", doi)) == 6
    assert "6 images of model standard of a release, checked" in fetch(doi).stdout
    assert len(web.asked) == 2


def test_a_tar_is_read_from_a_cache_that_can_only_be_read(
    tar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is unpacked there already; one that is not says what it needs."""
    with small_disk_at(tmp_path / "disk", 2_000) as disk:
        monkeypatch.setenv("CLEANSET_CACHE", str(disk / "cache"))
        assert len(cleanset.load(tar)) == 6
        subprocess.run(("mount", "-o", "remount,ro", str(disk)), check=True)
        assert len(cleanset.load(tar)) == 6
        assert "6 images of model standard of a release, checked" in fetch(str(tar)).stdout
        assert refused(str(tar), "--force").startswith(f"{disk}/cache: Read-only file system; expected a folder")


def test_a_tar_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(cleanset.CleansetError, match=r"none\.tar: missing; expected the tar of a release, its address"):
        cleanset.load(tmp_path / "none.tar")


def test_a_record_of_zenodo_by_its_page() -> None:
    for place in ("records/15771501", "record/15771501/", "doi/10.5281/zenodo.15771501"):
        assert is_release(f"https://zenodo.org/{place}")
        assert record_number(f"https://zenodo.org/{place}") == "15771501"
    assert not is_release("https://zenodo.org/doi/10.5282/zenodo.15771501")
    assert not is_release("https://example.org/cleanset.git")
    assert not is_release("10.5282/zenodo.12")


@pytest.mark.long
def test_what_is_not_the_file_of_the_record(web: Web, tar: Path, publisher: Publisher, tmp_path: Path) -> None:
    record(publisher, web, tar, checksum=f"md5:{'0' * 32}")
    assert f", expected md5:{'0' * 32} as in the record: run this again" in refused("10.5281/zenodo.12")
    record(publisher, web, tar, size=1000)
    size = tar.stat().st_size
    web.asked.clear()
    with pytest.raises(cleanset.CleansetError, match=rf"\.tar: '{size}' bytes; expected at most 1,000$"):
        cleanset.load("10.5281/zenodo.12")
    assert len(web.asked) == 2  # the record and the tar, once each
    record(publisher, web, tar, key="images.zip")
    assert "record with one tar; expected one of cleanset publish: give the address" in refused("10.5281/zenodo.12")
    record(publisher, web, tar, links={})
    assert "not Zenodo's answer for an open record" in refused("10.5281/zenodo.12")
    assert list((tmp_path / "cache" / "releases").glob("*")) == []


@pytest.mark.long
def test_a_broken_connection_is_retried(web: Web, tar: Path, publisher: Publisher) -> None:
    web.broken = 2
    assert len(cleanset.load(f"{web.url}/release/{tar.name}")) == 6
    assert len(web.asked) == 3


def test_a_release_that_does_not_verify(web: Web, tar: Path, export: Path, tmp_path: Path) -> None:
    folder = tmp_path / NAME
    shutil.copytree(tar.with_suffix(""), folder)
    (folder / FILES[2]).write_bytes(b"other")
    write_tar(folder, tar)
    assert f"undecodable  {FILES[2]}: not a JPEG or PNG" in refused(f"{web.url}/release/{tar.name}")
    tar.write_bytes(tar.read_bytes()[:-512])
    for place in (f"{web.url}/release/{tar.name}", str(tar)):
        with pytest.raises(cleanset.CleansetError, match="tar"):
            cleanset.load(place)
    assert list((tmp_path / "cache" / "releases").glob("*/release-*")) == []


def test_a_tar_and_a_folder_by_their_paths(tar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tar.parent)
    shutil.copytree(tar.with_suffix(""), "scooter")
    shutil.copytree(tar.with_suffix(""), "kept/one")
    for place in (tar.name, str(tar), tar, "./scooter", Path("scooter"), "./kept", f"./{NAME}"):
        assert [record["file"] for _, _, record in cleanset.load(place)] == FILES
        assert cleanset.table(place)["file"].tolist() == FILES
        assert [item.file for item in open_set(str(place), Edition(tmp_path), []).items] == sorted(FILES)
        assert verify.run(Path(place), decode=False).good == 6
    assert len(cleanset.load("standard", tar.name)) == 6
    assert len(list((tmp_path / "cache" / "releases").glob("*/release-*"))) == 1
    kept = cleanset.load(tar.name).folder / FILES[0]
    kept.write_bytes(b"damaged")
    assert len([image for image, _, _ in cleanset.load(tar.name, force=True)]) == 6
    (tmp_path / "predictions.csv").write_text("image,class_index\n" + "".join(f"{file},0\n" for file in FILES))
    code, out, _ = says(
        run_cleanset("evaluate", tar.name, "--predictions", f"{tmp_path}/predictions.csv", cwd=tar.parent)
    )
    assert (code, out.startswith(f"{tar.name}: 6 images")) == (0, True)


def test_several_sets_in_one_release(tar: Path, own: Edition, tmp_path: Path, publisher: Publisher) -> None:
    release = tmp_path / "cleanset-1.2.3"
    shutil.copytree(tar.with_suffix(""), release / "sets" / "standard")
    shutil.copytree(own.export("images"), release / "sets" / "images")
    whole = tmp_path / "cleanset-1.2.3.tar"
    write_tar(release, whole)
    for place in (release, whole):
        assert len(cleanset.load("standard", place)) == 6
        assert set(cleanset.table("images", place)["model"]) == {"images"}
        for call in (cleanset.load, cleanset.table, lambda at: verify.run(at, decode=False)):
            with pytest.raises(
                cleanset.CleansetError, match=r"finished sets of images, standard; expected one: give the"
            ):
                call(place)
        with pytest.raises(cleanset.CleansetError, match=r"no finished set of 'other'; .*: images, standard$"):
            cleanset.load("other", place)


def test_fetch_names_the_editions_of_a_repository(own: Edition, publisher: Publisher) -> None:
    """Editions of your own images have no raw.md5; a study is not an edition."""
    publisher.push(own.export("images"), str(publisher.remote), folder="mine", model="images")
    (publisher.repository / "mine" / "raw.md5").unlink()
    study = publisher.repository / "mine" / "studies" / "attacks"
    study.mkdir(parents=True)
    for name in ("dvc.lock", "params.yaml"):
        (study / name).write_text("{}\n")
    publisher.commit("A study")
    assert refused(publisher.url, "images") == (
        f"{publisher.url}: no dvc.lock; expected the folder of an edition (--folder); editions are in: mine"
    )
    assert "9 images of model images at commit" in fetch(publisher.url, "images", "--folder", "mine").stdout
