import io
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maserve.artifacts import ArtifactUri, Cancel, Limits, unpack
from maserve.base.errors import Invalid, Unavailable

LIMITS = Limits(max_files=50, max_bytes=1000)


def member(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.mode = 0o644
    vars_ = dict(fields)
    info.linkname = str(vars_.get("target", ""))
    info.mode = int(str(vars_.get("mode", info.mode)))
    return info


def a_tar(path: Path, members: Iterable[tarfile.TarInfo], content: bytes = b"data") -> Path:
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as tar:
        for info in members:
            info.size = len(content) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(content))
    return path


def a_zip(path: Path, files: dict[str, bytes], mode: int = stat.S_IFREG | 0o644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            pack.writestr(info, content, zipfile.ZIP_DEFLATED)
    return path


def unpacked(archive: Path, limits: Limits = LIMITS) -> Path:
    kind = ArtifactUri.parse(archive.as_uri()).archive
    assert kind is not None
    into = archive.parent / "into"
    unpack(archive, kind, into, limits, Cancel())
    return into


@pytest.mark.parametrize("name", ["a.tar", "a.tgz"])
def test_tar_is_unpacked_with_plain_modes(tmp_path: Path, name: str) -> None:
    members = [
        member("./m", tarfile.DIRTYPE, mode=0o700),
        member("./m/1/model.py", mode=0o600),
        member("m/run", mode=0o711),
    ]
    into = unpacked(a_tar(tmp_path / name, members))
    assert (into / "m/1/model.py").read_bytes() == b"data"
    assert stat.S_IMODE((into / "m/1/model.py").stat().st_mode) == 0o644
    assert stat.S_IMODE((into / "m/run").stat().st_mode) == 0o755


def test_zip_is_unpacked(tmp_path: Path) -> None:
    into = unpacked(a_zip(tmp_path / "a.zip", {"m/1/model.py": b"x", "m/empty/": b""}))
    assert (into / "m/1/model.py").read_bytes() == b"x"
    assert (into / "m/empty").is_dir()


def test_links_inside_are_kept(tmp_path: Path) -> None:
    members = [
        member("2/model.py", tarfile.SYMTYPE, target="../1/model.py"),
        member("1/model.py"),
        member("copy.py", tarfile.LNKTYPE, target="1/model.py"),
    ]
    into = unpacked(a_tar(tmp_path / "a.tar", members))
    assert (into / "2/model.py").read_bytes() == b"data"
    assert (into / "copy.py").read_bytes() == b"data"


@pytest.mark.parametrize(
    ("members", "needle"),
    [
        ([member("/etc/x")], "'/etc/x' has an absolute path"),
        ([member("../x")], "'../x' climbs out"),
        ([member("a/../../x")], "climbs out"),
        ([member("a", tarfile.SYMTYPE, target="/etc")], "'a' is a link out of the archive: '/etc'"),
        ([member("a/b", tarfile.SYMTYPE, target="../../x")], "is a link out of the archive"),
        ([member("a", tarfile.SYMTYPE, target="b")], "is a link to nothing"),
        ([member("a", tarfile.SYMTYPE, target="a")], "a link"),
        ([member("a", tarfile.SYMTYPE, target=""), member("b")], "is a link out"),
        ([member("a", tarfile.LNKTYPE, target="/etc/passwd")], "is a link out of the archive"),
        ([member("a", tarfile.LNKTYPE, target="../x")], "is a link out of the archive"),
        ([member("a", tarfile.LNKTYPE, target="none")], "is a hard link to 'none'"),
        ([member("a", tarfile.SYMTYPE, target="."), member("a/x")], "lies below the link a"),
        ([member("a"), member("a/x")], "lies below the file a"),
        ([member("a/x"), member("a")], "is a file where a folder is"),
        ([member("a"), member("a")], "is listed twice"),
        ([member("dev", tarfile.CHRTYPE)], "'dev' is a device"),
        ([member("pipe", tarfile.FIFOTYPE)], "is a device"),
        ([member("suid", mode=0o4755)], "'suid' has set-uid"),
        ([member(f"f{n}") for n in range(51)], "'f50' is more than the allowed 50 members"),
        ([member(f"f{n}") for n in range(300)], "more than the allowed"),
        ([member("x" * 300)], "cannot be stored"),
        (
            [
                member("p", tarfile.SYMTYPE, target="."),
                member("q", tarfile.SYMTYPE, target="p/../.."),
            ],
            "is a link out of the archive",
        ),
        (
            [
                member("d", tarfile.DIRTYPE),
                member("p", tarfile.SYMTYPE, target="."),
                member("q", tarfile.SYMTYPE, target="p/../d"),
                member("r", tarfile.SYMTYPE, target="p/.."),
            ],
            "'[qr]' is a link",
        ),
    ],
)
def test_dangerous_tar_is_refused_naming_the_member(
    tmp_path: Path, members: list[tarfile.TarInfo], needle: str
) -> None:
    with pytest.raises(Invalid, match=needle):
        unpacked(a_tar(tmp_path / "a.tar", members))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "into"]


def test_content_over_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="'bomb' goes over the allowed 1000 bytes"):
        unpacked(a_zip(tmp_path / "a.zip", {"bomb": b"0" * 100_000}))
    assert not (tmp_path / "into/bomb").exists()


def test_content_over_the_announced_size_is_refused(tmp_path: Path) -> None:
    data = a_zip(tmp_path / "a.zip", {"bomb": b"0" * 100_000}).read_bytes()
    size = (100_000).to_bytes(4, "little")
    assert data.count(size) == 2
    (tmp_path / "a.zip").write_bytes(data.replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(Invalid):
        unpacked(tmp_path / "a.zip")
    assert (tmp_path / "into/bomb").stat().st_size <= 1000


def test_member_that_does_not_fit_on_the_disk_is_not_begun(tmp_path: Path) -> None:
    header = tarfile.TarInfo("weights")
    header.size = shutil.disk_usage(tmp_path).free + (1 << 40)
    (tmp_path / "a.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 16))
    with pytest.raises(Unavailable, match="No space left on device"):
        unpacked(tmp_path / "a.tar", Limits(max_bytes=1 << 60))
    assert not (tmp_path / "into/weights").exists()


@pytest.mark.parametrize(
    ("files", "mode", "needle"),
    [
        ({"../x": b""}, stat.S_IFREG, "climbs out"),
        ({"/x": b""}, stat.S_IFREG, "absolute path"),
        ({"l": b"/etc/passwd"}, stat.S_IFLNK, "is a link out"),
        ({"d": b""}, stat.S_IFCHR, "is a device"),
        ({"s": b""}, stat.S_IFREG | 0o2755, "set-uid"),
    ],
)
def test_dangerous_zip_is_refused(
    tmp_path: Path, files: dict[str, bytes], mode: int, needle: str
) -> None:
    with pytest.raises(Invalid, match=needle):
        unpacked(a_zip(tmp_path / "a.zip", files, mode | 0o644))


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.zip"])
@pytest.mark.parametrize("content", [b"", b"not an archive at all" * 100])
def test_junk_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Invalid, match="archive cannot be read"):
        unpacked(tmp_path / name)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_archive_is_refused(tmp_path: Path, share: float) -> None:
    whole = a_tar(tmp_path / "a.tgz", [member(f"f{n}") for n in range(20)]).read_bytes()
    (tmp_path / "a.tgz").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(Invalid, match="archive cannot be read"):
        unpacked(tmp_path / "a.tgz")


def test_zip_with_a_nameless_member_is_refused(tmp_path: Path) -> None:
    data = a_zip(tmp_path / "a.zip", {"x": b"1"}).read_bytes()
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entry = data[start : start + 28] + bytes(2) + data[start + 30 : end - 1]
    size = len(entry).to_bytes(4, "little")
    tail = data[end : end + 12] + size + data[end + 16 :]
    (tmp_path / "a.zip").write_bytes(data[:start] + entry + tail)
    with pytest.raises(Invalid, match="archive cannot be read"):
        unpacked(tmp_path / "a.zip")


def test_zip_whose_directory_points_nowhere_is_refused(tmp_path: Path) -> None:
    data = a_zip(tmp_path / "a.zip", {"x": b"1"}).read_bytes()
    end = data.index(b"PK\x05\x06")
    wrong = (1000).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data[: end + 16] + wrong + data[end + 20 :])
    with pytest.raises(Invalid, match="archive cannot be"):
        unpacked(tmp_path / "a.zip")


def test_tar_without_its_end_is_refused(tmp_path: Path) -> None:
    whole = a_tar(tmp_path / "a.tar", [member("a"), member("b")]).read_bytes()
    (tmp_path / "a.tar").write_bytes(whole[: 2 * tarfile.BLOCKSIZE])
    with pytest.raises(Invalid, match="ends too early"):
        unpacked(tmp_path / "a.tar")


def test_tar_with_a_damaged_header_is_refused(tmp_path: Path) -> None:
    whole = bytearray(a_tar(tmp_path / "a.tar", [member("a"), member("b")]).read_bytes())
    whole[2 * tarfile.BLOCKSIZE] ^= 1
    (tmp_path / "a.tar").write_bytes(whole)
    with pytest.raises(Invalid, match="is damaged"):
        unpacked(tmp_path / "a.tar")


def test_packed_tar_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    whole = bytearray(a_tar(tmp_path / "a.tgz", [member("a")]).read_bytes())
    whole[-8] ^= 1
    (tmp_path / "a.tgz").write_bytes(whole)
    with pytest.raises(Invalid, match="CRC"):
        unpacked(tmp_path / "a.tgz")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_tar_with_an_endless_header_is_refused_unread(tmp_path: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("long")
    header.type, header.size = kind, 1 << 40
    (tmp_path / "a.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 16))
    with pytest.raises(Invalid, match="more than 1048576 bytes are no content"):
        unpacked(tmp_path / "a.tar")


@pytest.mark.parametrize("size", [-1, -512, -1 << 40])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_tar_with_a_negative_length_is_refused(tmp_path: Path, kind: bytes, size: int) -> None:
    header = tarfile.TarInfo("odd")
    header.type, header.size = kind, size
    (tmp_path / "a.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) * 3 + bytes(1 << 22))
    with pytest.raises(Invalid):
        unpacked(tmp_path / "a.tar")


NAMES = st.lists(st.sampled_from(["a", "b", "c", "..", ".", "", "1"]), min_size=1, max_size=4).map(
    "/".join
)
MEMBERS = st.lists(
    st.builds(
        member,
        NAMES,
        st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE]),
        target=NAMES,
    ),
    max_size=8,
)


def attempt(archive: Path) -> bool:
    try:
        unpacked(archive)
    except Invalid:
        return False
    return True


@given(MEMBERS)
@settings(deadline=None)
def test_no_archive_touches_anything_outside(members: list[tarfile.TarInfo]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "deep" / "er"
        root.mkdir(parents=True)
        (root / "a").write_text("precious")
        accepted = attempt(a_tar(root / "x.tar", members))
        links = [path for path in (root / "into").rglob("*") if path.is_symlink()]
        inside = (root / "into").resolve()
        assert (root / "a").read_text() == "precious"
        assert {path.name for path in root.iterdir()} <= {"a", "x.tar", "into"}
        assert [path.name for path in (root.parent).iterdir()] == ["er"]
        assert not accepted or all(link.resolve().is_relative_to(inside) for link in links)
