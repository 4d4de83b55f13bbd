"""Images, built on demand and once: the tag carries a hash of what they are built from.

    ensure("redis", release="trixie")        # "lockhavoc/redis:trixie-3fa1c2d4e5f6"

So a changed Dockerfile makes a new image and an unchanged one costs one look (10 ms).  Traps: two
runs that start together must not both build (a file lock sees to that); an image built FROM an old
base stays as it is until `docker image rm`; the CA bundle goes in as a BuildKit secret, never as a
layer.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compose.docker_here import ask
from harness.core import limits
from harness.core.errors import HarnessError, RefusedError

STDERR_FD = 2  # the real one: sys.stderr may be replaced by something without a descriptor
IMAGES = Path(__file__).parent / "images"
# Settings of the caller that the build needs too.  The proxies are BuildKit's own predefined
# arguments, which it keeps out of the image's history.
PASSED_ON = (
    *("GOPROXY", "GOFLAGS", "GOSUMDB", "GOTOOLCHAIN"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)


def tag(image: str, *, release: str) -> str:
    """Name and tag of an image for a Debian release; changes with any file of its folder."""
    digest = hashlib.sha256()
    folder = IMAGES / image
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return f"lockhavoc/{image}:{release}-{digest.hexdigest()[:12]}"


def exists(name: str) -> bool:
    """True if the Engine has this image now."""
    # A slow answer must not look like a missing image, hence the long bound.
    argv = ("image", "inspect", "--format", "{{.Id}}", name)
    found, _ = ask(*argv, timeout_s=limits.ENGINE_TIMEOUT_S)
    return found


def base_image(release: str) -> str:
    return f"debian:{release}-slim"


def cannot_build(image: str, *, release: str) -> str | None:
    """None if the image is there or can be built, else the reason and the fix; in about 1 s."""
    if exists(tag(image, release=release)) or exists(base_image(release)):
        return None
    base = base_image(release)
    if ask("buildx", "imagetools", "inspect", base)[0]:
        return None  # a registry has it, and the build will fetch it
    return (
        f"image lockhavoc/{image} is not built and its base image {base} is neither here nor given"
        f" by a registry: run `make engine RELEASE={release}`, which makes it"
    )


def ensure(image: str, *, release: str) -> str:
    """Builds the image unless it is there, with progress on stderr; returns its tag.

    Raises RefusedError if its base image cannot be had, HarnessError if the build fails.
    """
    name = tag(image, release=release)
    if exists(name):
        return name
    with _build_lock():
        if exists(name):  # the run that held the lock has built it
            return name
        reason = cannot_build(image, release=release)
        if reason:
            raise RefusedError(reason)
        _build(image, name, release)
    return name


def _build(image: str, name: str, release: str) -> None:
    argv = ["docker", "buildx", "build", "--load", "--progress=plain", "--tag", name]
    argv += ["--build-arg", f"RELEASE={release}", "--label", "lockhavoc=1"]
    for setting in PASSED_ON:
        if os.environ.get(setting):
            argv += ["--build-arg", setting]  # without a value: taken from our environment
    bundle = ca_bundle()
    if bundle:
        argv += ["--secret", f"id=ca,src={bundle}"]
    argv.append(str(IMAGES / image))
    print(f"building {name} (once)", file=sys.stderr, flush=True)  # noqa: T201 - progress
    try:
        # BuildKit's progress goes to stderr as it comes; stdout may be a report for a machine.
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=STDERR_FD,
            timeout=limits.IMAGE_BUILD_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"image {name}: {error}") from error
    if done.returncode != 0:
        raise HarnessError(
            f"image {name}: the build failed (output above); again by hand: {' '.join(argv)}"
        )


def ca_bundle() -> str | None:
    """The host's bundle of certificates, as Python and OpenSSL would find it, or None."""
    candidates = (
        os.environ.get("CA_BUNDLE"),
        os.environ.get("SSL_CERT_FILE"),
        ssl.get_default_verify_paths().cafile,
        *CA_BUNDLES,
    )
    return next((path for path in candidates if path and os.path.isfile(path)), None)


@contextmanager
def _build_lock() -> Iterator[None]:
    path = Path(tempfile.gettempdir()) / f"lockhavoc-build-{os.getuid()}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
