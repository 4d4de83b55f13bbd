#!/bin/sh
# Puts a Docker Engine, Compose v2 and buildx on a Debian or Ubuntu machine that has none, starts
# the Engine and makes the base image.  What `make engine` runs; needs root for what is missing.
#
#   sh compose/engine.sh               # all of it; quiet when all is there
#   RELEASE=bookworm sh compose/engine.sh
#
# Why so much care: Debian 12's own Engine is 20.10 and has no Compose v2, so there the packages
# come from Debian 13.  The source for them is derived from the machine's own Debian source with
# only the suite replaced, so that the mirror that works here is used, and pinned at 100, so that
# nothing else of the machine moves.
# Traps: another package manager may hold the dpkg lock (apt waits for it) · a `docker` on PATH may
# be a bare client, with the plugins of the packages in /usr/libexec/docker/cli-plugins (every
# client since 18.09 looks there) · a dockerd that was killed leaves pid files (it copes).

set -eu

RELEASE="${RELEASE:-trixie}"
BASE_IMAGE="debian:${RELEASE}-slim"
ENGINE_WAIT_S="${ENGINE_WAIT_S:-60}"
DPKG_LOCK_WAIT_S=300
SOURCE_FILE=/etc/apt/sources.list.d/lockhavoc-trixie.sources
PIN_FILE=/etc/apt/preferences.d/lockhavoc-trixie
WORK_DIR=""

say() { printf 'engine: %s\n' "$*" >&2; }
die() { printf 'engine: error: %s\n' "$*" >&2; exit 255; }
cleanup() { [ -z "$WORK_DIR" ] || rm -rf "$WORK_DIR"; }
trap cleanup EXIT
trap 'exit 130' INT TERM

engine_answers() {
    command -v docker >/dev/null 2>&1 &&
        [ -n "$(timeout 10 docker version --format '{{.Server.Version}}' 2>/dev/null)" ]
}
compose_works() {
    case "$(docker compose version --short 2>/dev/null)" in
        "" | 1.* | v1.*) return 1 ;;
    esac
}
buildx_works() { docker buildx version >/dev/null 2>&1; }
remote_engine() {
    case "${DOCKER_HOST:-}" in
        "" | unix:///var/run/docker.sock | unix:///run/docker.sock) return 1 ;;
    esac
}
need_root() {
    [ "$(id -u)" = 0 ] || die "$1 needs root: run 'sudo make engine' (or ask the machine's owner)"
}

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o "DPkg::Lock::Timeout=$DPKG_LOCK_WAIT_S" \
        -o APT::Get::List-Cleanup=0 "$@" >>"$APT_LOG" 2>&1
}
apt_must() {
    apt "$@" || { tail -n 15 "$APT_LOG" >&2; die "apt-get $* failed; whole log: $APT_LOG"; }
}

# --- packages -----------------------------------------------------------------------------------

install_packages() {
    need_root "installing the Docker Engine"
    command -v apt-get >/dev/null 2>&1 ||
        die "this machine has no apt-get; install Docker Engine >= 25 with Compose v2 by hand"
    APT_LOG="${TMPDIR:-/tmp}/lockhavoc-engine-apt.log"
    : >"$APT_LOG"
    ID="" ID_LIKE="" VERSION_CODENAME=""
    # shellcheck source=/dev/null
    . /etc/os-release
    # A broken third-party source must not stop us; a package that is missing then will.
    apt update || say "apt-get update reported problems (see $APT_LOG), going on"
    case " $ID $ID_LIKE " in
        *" ubuntu "*) install_on_ubuntu ;;
        *" debian "*) install_on_debian ;;
        *) die "unknown system '$ID': only Debian and Ubuntu are known; install Docker by hand" ;;
    esac
}

install_on_ubuntu() {
    say "installing docker.io, docker-buildx and docker-compose-v2 from Ubuntu"
    apt_must install --no-install-recommends docker.io docker-buildx docker-compose-v2 \
        iptables ca-certificates mmdebstrap debian-archive-keyring
}

install_on_debian() {
    case "$VERSION_CODENAME" in
        bullseye | bookworm) install_from_trixie ;;
        *)
            say "installing docker.io, docker-cli, docker-buildx and docker-compose from Debian"
            apt_must install --no-install-recommends docker.io docker-cli docker-buildx \
                docker-compose iptables ca-certificates mmdebstrap
            ;;
    esac
}

install_from_trixie() {
    add_trixie_source
    apt_must install --no-install-recommends iptables mmdebstrap ca-certificates
    say "installing docker.io, docker-cli, docker-buildx and docker-compose from Debian trixie"
    apt_must install --no-install-recommends -t trixie docker.io docker-cli docker-buildx \
        docker-compose
}

# Asks apt which of its sources is Debian's own, whatever file and format it is written in.
add_trixie_source() {
    uri=$(apt-get indextargets --format '$(REPO_URI)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)|$(LABEL)' \
        'Created-By: Packages' |
        awk -F'|' -v code="$VERSION_CODENAME" \
            '$2 == code && $3 == "main" && $4 == "Debian" && $5 == "Debian" { print $1; exit }')
    [ -n "$uri" ] || die "apt lists no Debian source for $VERSION_CODENAME main: add one, then again"
    {
        printf 'Types: deb\nURIs: %s\nSuites: trixie\nComponents: main\n' "$uri"
        keyring=/usr/share/keyrings/debian-archive-keyring.gpg
        [ ! -e "$keyring" ] || printf 'Signed-By: %s\n' "$keyring"
    } >"$SOURCE_FILE"
    printf 'Package: *\nPin: release n=trixie\nPin-Priority: 100\n' >"$PIN_FILE"
    say "added a trixie source, pinned at 100 ($SOURCE_FILE)"
    apt_must update
}

# --- the daemon ---------------------------------------------------------------------------------

start_engine() {
    need_root "starting the Docker Engine"
    command -v dockerd >/dev/null 2>&1 || die "no dockerd on PATH after the installation"
    log=/var/log/lockhavoc-dockerd.log
    touch "$log" 2>/dev/null || log=/tmp/lockhavoc-dockerd.log
    # With systemd as init its unit is the one owner of the daemon; elsewhere we start it.
    if [ -d /run/systemd/system ] && systemctl cat docker.service >/dev/null 2>&1; then
        say "starting docker.service"
        systemctl start docker.service || die "systemctl start docker failed: journalctl -u docker"
    elif ! pgrep -x dockerd >/dev/null 2>&1; then
        say "starting dockerd in the background, log in $log"
        setsid dockerd >>"$log" 2>&1 </dev/null &
    fi
    waited=0
    until engine_answers; do
        if [ "$waited" -ge "$ENGINE_WAIT_S" ]; then
            tail -n 15 "$log" >&2 || true
            die "the Engine did not answer within $ENGINE_WAIT_S s; its log: $log"
        fi
        waited=$((waited + 1))
        sleep 1
    done
}

# --- the base image -----------------------------------------------------------------------------

make_base_image() {
    if timeout 120 docker pull -q "$BASE_IMAGE" >/dev/null 2>&1; then
        say "pulled $BASE_IMAGE"
        return
    fi
    say "no registry gave $BASE_IMAGE: making it with mmdebstrap"
    command -v mmdebstrap >/dev/null 2>&1 || {
        need_root "installing mmdebstrap"
        APT_LOG="${TMPDIR:-/tmp}/lockhavoc-engine-apt.log"
        apt update || true
        apt_must install --no-install-recommends mmdebstrap
    }
    WORK_DIR=$(mktemp -d)
    # Debian's own source of this machine where it has one, so that no mirror is named here.
    mirror=$(apt-get indextargets --format '$(REPO_URI)|$(COMPONENT)|$(ORIGIN)|$(LABEL)' \
        'Created-By: Packages' |
        awk -F'|' '$2 == "main" && $3 == "Debian" && $4 == "Debian" { print $1; exit }')
    # shellcheck disable=SC2086  # no mirror means mmdebstrap's own default
    mmdebstrap --variant=minbase --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin' \
        "$RELEASE" "$WORK_DIR/base.tar" $mirror >"$WORK_DIR/log" 2>&1 || {
        tail -n 15 "$WORK_DIR/log" >&2
        die "mmdebstrap could not make $BASE_IMAGE (output above)"
    }
    docker import --change 'CMD ["bash"]' "$WORK_DIR/base.tar" "$BASE_IMAGE" >/dev/null
    say "made $BASE_IMAGE"
}

main() {
    case "$RELEASE" in
        trixie | bookworm) ;;
        *) die "RELEASE=$RELEASE is not known: trixie or bookworm" ;;
    esac
    if remote_engine && ! engine_answers; then
        die "DOCKER_HOST=$DOCKER_HOST does not answer; unset it to use an Engine on this machine"
    fi
    if ! command -v docker >/dev/null 2>&1 || ! compose_works || ! buildx_works ||
        { ! engine_answers && ! command -v dockerd >/dev/null 2>&1; }; then
        install_packages
        compose_works || die "'docker compose' does not work with $(command -v docker)"
        buildx_works || die "'docker buildx' does not work with $(command -v docker)"
    fi
    engine_answers || start_engine
    docker image inspect "$BASE_IMAGE" >/dev/null 2>&1 || make_base_image
    say "Engine $(docker version --format '{{.Server.Version}}')," \
        "Compose $(docker compose version --short)," \
        "base image $BASE_IMAGE: ready"
}

main
