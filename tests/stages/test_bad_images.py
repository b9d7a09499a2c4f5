"""Wrong images are one line that says file, field, what was found, what was expected and what to do."""

import hashlib
import io
import os
import tarfile
from typing import Any

import pytest

from tests.stages.inputs import AT_DEVKIT, AT_TAR, FOURTH, a_member, with_image, with_member
from tests.ten_images import Made, drawn_image, id_of, jpeg, official, tar, ten_images, with_size, write

pytestmark = pytest.mark.slow


class TestImages:
    CANNOT = f"{AT_TAR}: {FOURTH} cannot be read (*{{}}*); expected a whole JPEG: fetch it again"

    @pytest.mark.parametrize("cut", [20, 100, 400])
    def test_truncated(self, made: Made, cut: int) -> None:
        data = ten_images()[FOURTH]
        with_image(made, data[:-cut]).fails(self.CANNOT.format("truncated"))

    def test_cut_within_the_header(self, made: Made) -> None:
        with_image(made, ten_images()[FOURTH][:20]).fails(self.CANNOT.format(""))

    def test_empty(self, made: Made) -> None:
        with_image(made, b"").fails(self.CANNOT.format("empty"))

    def test_png_under_another_name(self, made: Made) -> None:
        out = io.BytesIO()
        drawn_image(20, 20).save(out, format="PNG")
        with_image(made, out.getvalue()).fails(self.CANNOT.format("not a JPEG"))

    def test_text_under_another_name(self, made: Made) -> None:
        with_image(made, b"<html>404</html>").fails(self.CANNOT.format("not a JPEG"))

    def test_decompression_bomb(self, made: Made) -> None:
        with_image(made, with_size(jpeg(drawn_image(16, 16)), 65_000, 65_000)).fails(
            self.CANNOT.format("4225000000 pixels) exceeds limit of")
        )

    def test_small_decompression_bomb(self, made: Made) -> None:
        with_image(made, with_size(jpeg(drawn_image(16, 16)), 12_000, 12_000)).fails(
            self.CANNOT.format("12000 x 12000 pixels, more than 100,000,000")
        )

    def test_extreme_shape(self, made: Made) -> None:
        with_image(made, jpeg(drawn_image(1, 65_000))).fails(
            self.CANNOT.format("1 x 65000 pixels, one side more than 200 times the other")
        )

    def test_many_scans(self, made: Made) -> None:
        data = jpeg(drawn_image(16, 16), progressive=True)
        last = data.rindex(b"\xff\xda")
        with_image(made, data[:last] + 200 * data[last:-2] + data[-2:]).fails(self.CANNOT.format("scans, more than 64"))

    def test_damaged_exif_header(self, made: Made) -> None:
        data = ten_images()[FOURTH]
        with_image(made, data[:2] + b"\xff\xe1\0\x10Exif\0\0nonsense" + data[2:]).succeeds("preprocess")

    @pytest.mark.parametrize("name", ["holiday.JPEG", "ILSVRC2012_val_4.JPEG", f"{FOURTH}.jpg", "ILSVRC2012_val.txt"])
    def test_wrongly_named_in_a_tar(self, made: Made, name: str) -> None:
        with_member(made, a_member(name), b"x").fails(
            f"{AT_TAR}, member '{name}': not the name of a validation image; "
            "expected ILSVRC2012_val_00000001.JPEG or alike: remove or rename it"
        )

    def test_a_line_break_in_a_name_stays_on_the_line(self, made: Made) -> None:
        with_member(made, a_member("a\nb.JPEG"), b"x").fails(f"{AT_TAR}, member 'a\\nb.JPEG': not the name of a *")

    def test_duplicate_in_a_tar(self, made: Made) -> None:
        with_member(made, a_member(f"again/{FOURTH}.JPEG"), b"x").fails(
            f"{AT_TAR}, member 'again/{FOURTH}.JPEG': {FOURTH} occurs twice; remove one of the two"
        )

    def test_missing(self, made: Made) -> None:
        images = ten_images()
        del images[FOURTH]
        made.archives(images=official(images)).fails(
            f"{AT_TAR}: 9 images, expected 10 (dataset.expect_images); the first that is missing is {FOURTH}: "
            "complete the set or correct params.yaml"
        )

    def test_too_many(self, made: Made) -> None:
        made.archives()
        made.params(expect_images=9)
        made.fails(f"{AT_TAR}: 10 images, expected 9 (dataset.expect_images): complete the set or correct params.yaml")

    def test_number_beyond_the_labels(self, made: Made) -> None:
        images = ten_images()
        images[id_of(11)] = images.pop(FOURTH)
        made.archives(images=official(images)).fails(
            f"{AT_DEVKIT}, ILSVRC2012_validation_ground_truth.txt: no label for ILSVRC2012_val_00000011; it lists "
            "10 images: remove that image, or take the labels that belong to it (dataset.devkit)"
        )


class TestFolders:
    def folder(self, made: Made, files: dict[str, bytes], **dataset: Any) -> Made:
        made.archives()
        for name, data in files.items():
            write(made.file("val") / name, data)
        made.params(images="data/raw/val", **dataset)
        return made

    def test_wrong_wnid_folder(self, made: Made) -> None:
        files = {f"n01440764/{FOURTH}.JPEG": ten_images()[FOURTH]}
        self.folder(made, files, expect_images=1).fails(
            f"data/raw/val/n01440764/{FOURTH}.JPEG: {FOURTH} lies under n01440764, but {AT_DEVKIT}, "
            "ILSVRC2012_validation_ground_truth.txt has n02119789; move it"
        )

    def test_wrong_wnid_in_the_name(self, made: Made) -> None:
        files = {f"n02119789/{FOURTH}_n01440764.JPEG": b"x"}
        self.folder(made, files).fails(
            f"data/raw/val/n02119789/{FOURTH}_n01440764.JPEG: n01440764 in the name, n02119789 as the folder; "
            "expected the same: move or rename it"
        )

    def test_unknown_wnid_in_the_name(self, made: Made) -> None:
        self.folder(made, {f"{FOURTH}_n99999999.JPEG": b"x"}).fails(
            f"data/raw/val/{FOURTH}_n99999999.JPEG: n99999999 is not one of the 1,000 wnids; "
            "take the name of the official image"
        )

    def test_folder_that_is_no_wnid(self, made: Made) -> None:
        self.folder(made, {f"foxes/{FOURTH}.JPEG": b"x"}).fails(
            "data/raw/val/foxes: not one of the 1,000 wnids; expected folders like n01440764: *"
        )

    def test_the_same_image_in_two_folders(self, made: Made) -> None:
        self.folder(made, {f"n01440764/{FOURTH}.JPEG": b"x", f"n02119789/{FOURTH}.JPEG": b"x"}).fails(
            f"data/raw/val/n02119789/{FOURTH}.JPEG: {FOURTH} occurs twice; remove one of the two"
        )

    def test_wrongly_named(self, made: Made) -> None:
        self.folder(made, {"readme.txt": b"x"}).fails(
            "data/raw/val/readme.txt: not the name of a validation image; "
            "expected ILSVRC2012_val_00000001.JPEG or alike: remove or rename it"
        )

    def test_huge_file(self, made: Made) -> None:
        self.folder(made, {f"{FOURTH}.JPEG": b""})
        os.truncate(made.file("val") / f"{FOURTH}.JPEG", 2**30)
        made.fails(
            f"data/raw/val/{FOURTH}.JPEG: 1,073,741,824 bytes; expected at most 67,108,864: take the official file"
        )

    @pytest.mark.parametrize("name", [f"{FOURTH}.JPEG", f"n02119789/{FOURTH}.JPEG"])
    @pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "link to a device"])
    def test_no_regular_file(self, made: Made, name: str, kind: str) -> None:
        """Opening a pipe would wait for a writer, for ever."""
        self.folder(made, {})
        path = made.file("val") / name
        path.parent.mkdir(parents=True)
        os.mkfifo(made.folder / "pipe")
        match kind:
            case "pipe":
                os.mkfifo(path)
            case "link to a pipe":
                path.symlink_to(made.folder / "pipe")
            case "link to a device":
                path.symlink_to("/dev/zero")
        found = "a device" if kind == "link to a device" else "a named pipe"
        made.fails(f"data/raw/val/{name}: {found}; expected a regular file: name another, or copy the content into one")

    def test_folder_in_the_folder_of_a_class(self, made: Made) -> None:
        self.folder(made, {f"n02119789/more/{FOURTH}.JPEG": b"x"}).fails(
            "data/raw/val/n02119789/more: a folder; expected a regular file: name another, or copy the content into one"
        )

    def test_empty_folder(self, made: Made) -> None:
        self.folder(made, {".DS_Store": b"x"}).fails(
            "data/raw/val: holds no image; expected ILSVRC2012_val_00000001.JPEG and so on"
        )

    def test_missing_folder(self, made: Made) -> None:
        self.folder(made, {}).fails("data/raw/val: missing; put it there or correct params.yaml")

    def test_link_to_nowhere(self, made: Made) -> None:
        self.folder(made, {f"{id_of(1)}.JPEG": b"x"})
        (made.file("val") / f"{FOURTH}.JPEG").symlink_to("nowhere")
        made.fails(f"data/raw/val/{FOURTH}.JPEG: No such file or directory")

    def test_flat_folder_without_labels(self, made: Made) -> None:
        self.folder(made, {f"{FOURTH}.JPEG": b"x"}, expect_images=1, devkit=None).fails(
            f"data/raw/val: {FOURTH} has no label; expected dataset.devkit, a folder per wnid, "
            "or names that end in a wnid"
        )

    @pytest.mark.parametrize(
        ("csv", "message"),
        [
            (
                f"ImageId,PredictionString\n{FOURTH},fox 1 2 3 4\n",
                f", line 2: '{FOURTH},fox 1 2 3 4'; expected ImageId ILSVRC2012_val_00000001 and a "
                "PredictionString that begins with a wnid",
            ),
            (
                f"ImageId,PredictionString\n{id_of(1)},n01440764 1 2 3 4\n{id_of(1)},n02119789 1 2 3 4\n",
                f", line 3: {id_of(1)} a second time; expected one line for every image",
            ),
            (
                f"ImageId,PredictionString\n{FOURTH}\n",
                ", line 2: 1 cells; expected ImageId,PredictionString",
            ),
            (
                f'ImageId,PredictionString\n"{FOURTH},n02119789 1 2 3 4\n',
                ", line 2: not CSV (unexpected end of data); expected ImageId,PredictionString",
            ),
            (f"{FOURTH},n02119789\n", f", line 1: '{FOURTH},n02119789'; expected the header ImageId,PredictionString"),
            (
                f"ImageId,PredictionString\n{FOURTH},n02119789 1 2 3 4\n",
                ": 1 images; expected one line for each image, starting with image 1",
            ),
            ("ImageId,PredictionString\n", ": 0 images; expected one line for each image, starting with image 1"),
        ],
    )
    @pytest.mark.parametrize("images", ["data/raw/val", "data/raw/val/ILSVRC/Data/CLS-LOC/val"])
    def test_kaggle_list(self, made: Made, csv: str, message: str, images: str) -> None:
        self.kaggle(made, csv)
        made.params(images=images)
        with (made.folder / "raw.md5").open("a") as file:
            file.write(f"{hashlib.md5(csv.encode()).hexdigest()}  {self.AT_KAGGLE}\n")
        made.fails(f"{self.AT_KAGGLE}{message}")

    AT_KAGGLE = "data/raw/val/LOC_val_solution.csv"

    def kaggle(self, made: Made, csv: str) -> None:
        files = {f"ILSVRC/Data/CLS-LOC/val/{FOURTH}.JPEG": b"x", "LOC_val_solution.csv": csv.encode()}
        self.folder(made, files, expect_images=1, devkit=None)

    def test_kaggle_list_without_a_checksum(self, made: Made) -> None:
        self.kaggle(made, "")
        made.fails(f"raw.md5: no line for {self.AT_KAGGLE}; add what md5sum {self.AT_KAGGLE} prints")

    def test_changed_kaggle_list(self, made: Made) -> None:
        self.kaggle(made, "")
        with (made.folder / "raw.md5").open("a") as file:
            file.write(f"{'0' * 32}  {self.AT_KAGGLE}\n")
        made.fails(f"{self.AT_KAGGLE}: MD5 {hashlib.md5(b'').hexdigest()}, expected {'0' * 32} as in raw.md5: *")


class TestTar:
    @pytest.mark.parametrize("name", [f"../{FOURTH}.JPEG", f"val/../../{FOURTH}.JPEG", f"/etc/{FOURTH}.JPEG"])
    def test_path_outside(self, made: Made, name: str) -> None:
        with_member(made, a_member(name), b"x").fails(
            f"{AT_TAR}, member '{name}': a path outside the archive; take the official archive"
        )

    @pytest.mark.parametrize(
        "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE]
    )
    def test_link_or_device(self, made: Made, kind: bytes) -> None:
        name = f"{id_of(11)}.JPEG"
        with_member(made, a_member(name, kind, "/etc/passwd")).fails(
            f"{AT_TAR}, member '{name}': a link or device; expected plain files only: take the official archive"
        )

    SPARSE = "*: a sparse file; expected plain files only: take the official archive"

    def test_sparse_member(self, made: Made) -> None:
        with_member(made, a_member(f"{id_of(11)}.JPEG", tarfile.GNUTYPE_SPARSE)).fails(self.SPARSE)

    @pytest.mark.parametrize(
        ("headers", "message"),
        [
            ({"GNU.sparse.map": "0,1"}, SPARSE),
            ({"GNU.sparse.map": ""}, "*: not an uncompressed tar (invalid literal *); expected *"),
            ({"GNU.sparse.size": "3"}, SPARSE),
            ({"GNU.sparse.name": "x"}, SPARSE),
            ({"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, "*: not an uncompressed tar (*); expected *"),
            ({"size": "-1024"}, "*: -1,024 bytes; expected at most 67,108,864: take the official file"),
            ({"path": "../x"}, "*, member '../x': a path outside the archive; take the official archive"),
        ],
    )
    def test_odd_pax_headers(self, made: Made, headers: dict[str, str], message: str) -> None:
        member = a_member(f"{id_of(11)}.JPEG")
        member.pax_headers = headers
        with_member(made, member, b"no number\n" + bytes(600)).fails(message)

    def test_huge_member(self, made: Made) -> None:
        info = a_member(f"{id_of(11)}.JPEG")
        info.size = 2**40
        header = info.tobuf()
        made.archives(images=official({id_of(1): b"x"})[:1024] + header).fails(
            f"{AT_TAR}, member '{id_of(11)}.JPEG': 1,099,511,627,776 bytes; expected at most 67,108,864: "
            "take the official file"
        )

    def test_truncated_within_a_image(self, made: Made) -> None:
        made.archives(images=official(ten_images())[:5000]).fails(
            f"{AT_TAR}: not an uncompressed tar (unexpected end of data); expected ILSVRC2012_img_val.tar: "
            "decompress it or fetch it again"
        )

    @pytest.mark.parametrize("more", [0, 100])
    def test_truncated_between_images_or_in_a_header(self, made: Made, more: int) -> None:
        """Python's tarfile takes both for the end of the archive."""
        whole = official(ten_images())
        second = whole.index(f"{id_of(2)}.JPEG".encode())
        made.archives(images=whole[: second + more])
        made.params(expect_images=None)
        made.fails(f"{AT_TAR}: no end mark after {second:,} bytes: truncated or damaged; fetch it again")

    def test_damaged_header(self, made: Made) -> None:
        whole = official(ten_images())
        second = whole.index(f"{id_of(2)}.JPEG".encode())
        made.archives(images=whole[:second] + b"\xff" * 20 + whole[second + 20 :])
        made.params(expect_images=None)
        made.fails(f"{AT_TAR}: no end mark after {second:,} bytes: truncated or damaged; fetch it again")

    @pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
    def test_compressed(self, made: Made, compression: str) -> None:
        data = tar({f"{name}.JPEG": data for name, data in ten_images().items()}, f"w:{compression}")
        made.archives(images=data).fails(
            f"{AT_TAR}: not an uncompressed tar (*); expected ILSVRC2012_img_val.tar: decompress it or fetch it again"
        )

    def test_empty_archive(self, made: Made) -> None:
        made.archives(images=tar({})).fails(
            f"{AT_TAR}: holds no image; expected ILSVRC2012_val_00000001.JPEG and so on"
        )

    def test_no_archive_at_all(self, made: Made) -> None:
        made.archives(images=b"").fails(f"{AT_TAR}: not an uncompressed tar (*empty*); expected *")
