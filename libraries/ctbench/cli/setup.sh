# shellcheck shell=bash disable=SC2154
# Sourced by ./run: installs what is missing, quickly skips what is there. Uses its `root` and `bisects`.

# Not `python3`: a pyenv shim would tie the .venv to one user's home, which other users cannot read.
system_python=/usr/bin/python3
venv=$root/.venv
python=$venv/bin/python

readonly PACKAGES=(openvswitch-switch-dpdk iproute2 iptables nftables conntrack ethtool procps util-linux
    python3-venv gcc libc6-dev)
readonly TEST_PACKAGES=(tshark openssh-server openssh-client mmdebstrap)
# A browser for the tests of the report, 100 MB, which only Debian has as a package.
readonly BROWSER=chromium-headless-shell
# What the emulated machine needs: QEMU, a compiler and a shell for what runs in it; its kernel is unpacked below .venv.
readonly EMULATED_PACKAGES=(qemu-system-x86 busybox-static dash tcc) EMULATED_KERNEL=linux-image-cloud-amd64
readonly SKIPPED='the tests with an emulated machine will be skipped (CONNTRACK_SLA_EMULATED=no declines it)'

# Progress goes to stderr: stdout belongs to what was asked for.
say() { printf 'run: %s\n' "$*" >&2; }

# Something that is needed is missing: status 6. It says nothing of a commit that is bisected: 125 there.
die() {
    say "$*"
    [[ -z $bisects ]] || exit 125
    exit 6
}
# Whatever else ends the set-up: status 1 would be a judgement.
trap 'status=$?; ((status == 6 || status == 125 || status > 128)) || die "the set-up failed ($status), see above."' EXIT

# What ends this ends what it waits for, kill -9 included.
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Runs a program that takes long: a signal ends it at once, and the kernel ends it when this ends, whatever ends this.
awaited() {
    setpriv --pdeathsig KILL -- "$@" </dev/null >&2 &
    wait "$!"
}

# --- system packages ------------------------------------------------------------------------------------------------

# sudo asks on the terminal itself, whatever the input of what it runs.
can_ask=
[[ ! -t 0 ]] || can_ask=yes

# Runs "$@" as root. Fails when that takes an answer, and there is no terminal to ask on.
as_root() {
    if ((EUID == 0)); then
        "$@"
    elif [[ -n $can_ask ]]; then
        sudo -- "$@"
    else
        sudo -n -- "$@"
    fi
}

# The names of DPDK's driver packages, memif, and af_packet for OVS over veth; without mempool-ring OVS says "Failed to
# create mempool". They carry the ABI of DPDK, which the OVS that is installed tells; before that, a pattern for apt.
drivers() {
    local depends abi='[0-9][0-9]'
    depends=$(dpkg-query --show --showformat '${Depends}' openvswitch-switch-dpdk 2>/dev/null) || true
    [[ ! $depends =~ librte-eal([0-9]+) ]] || abi=${BASH_REMATCH[1]}
    printf '%s\n' "librte-net-memif$abi" "librte-mempool-ring$abi" "librte-net-af-packet$abi"
}

# The packages among "$@" that are not installed, one a line. Asks dpkg, not apt: it answers in milliseconds.
missing_of() {
    local package
    for package in "$@"; do
        # dpkg also knows packages that others only name ("not-installed"), and prints one state for each architecture.
        [[ " $(dpkg-query --show --showformat '${db:Status-Status} ' "$package" 2>/dev/null)" == *" installed "* ]] ||
            printf '%s\n' "$package"
    done
}

# apt without questions, and without starting the distribution's OVS: SYSTEMD_OFFLINE (systemd) and RUNLEVEL (SysV)
# make the packages' start-up calls do nothing. A daemon that runs already is left alone. In a container without
# either of them the package's own script decides; installing a policy-rc.d would be a change to the host.
apt_get() {
    local name proxies=()
    # sudo drops what apt reads of proxies, with the rest of the environment.
    for name in http_proxy https_proxy no_proxy; do
        [[ ! -v $name ]] || proxies+=("$name=${!name}")
    done
    as_root env "${proxies[@]}" DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 RUNLEVEL=1 \
        apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 --quiet --yes "$@" </dev/null >&2
}

# Fails where nothing can be done as root. apt does not wait for the lock of its lists, which another ./run may have, or
# for minutes a machine that was just started: five minutes at most. Where a source of packages fails, others may do.
update_lists() {
    local lock
    for _ in {1..30}; do
        apt_get update && return
        (($? == 100)) || return 1
        lock=$(stat -c %i /var/lib/apt/lists/lock 2>/dev/null) && grep -q ":$lock " /proc/locks || return 0
        say "another program has apt's lists of packages: trying again in ten seconds."
        awaited sleep 10
    done
}

# install_packages PACKAGE... : fails where one of them cannot be installed.
install_packages() {
    local missing
    mapfile -t missing < <(missing_of "$@")
    ((${#missing[@]})) || return 0
    say "installing ${missing[*]} (about a minute)"
    update_lists && apt_get install --no-install-recommends "${missing[@]}" || return 1
    # The tests start an sshd of their own. One that nobody asked for must not listen after the next boot either.
    if [[ " ${missing[*]} " == *" openssh-server "* ]] && command -v systemctl >/dev/null; then
        as_root env SYSTEMD_OFFLINE=1 systemctl disable ssh.service ssh.socket >/dev/null 2>&1 || true
    fi
}

# system_packages PACKAGE... : these and DPDK's drivers.
system_packages() {
    local wanted missing
    [[ $(uname -m) == x86_64 ]] ||
        die "this is a $(uname -m) machine, and the software traffic generator works on x86-64 only."
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        die "this system has no apt-get and dpkg-query, with which Open vSwitch with DPDK and the rest are installed:" \
            "use the container of Debian 13 (docs/containers.md)."
    mapfile -t wanted < <(printf '%s\n' "$@" && drivers)
    install_packages "${wanted[@]}" && return 0
    mapfile -t missing < <(missing_of "${wanted[@]}")
    die "system packages are missing and could not be installed. An administrator can, with:
  apt-get update && apt-get install --no-install-recommends ${missing[*]@Q}"
}

# `emulated newest` also looks for a newer kernel. Where something is missing, the tests that need it are skipped.
emulated() {
    local kernel=$venv/emulated-kernel package version
    if [[ ${CONNTRACK_SLA_EMULATED:-yes} == no ]]; then
        say "the emulated machine is declined (CONNTRACK_SLA_EMULATED=no): its tests will be skipped."
        return 0
    fi
    install_packages "${EMULATED_PACKAGES[@]}" || {
        say "root can install ${EMULATED_PACKAGES[*]}, with ./run setup: $SKIPPED."
        return 0
    }
    [[ ${1:-} == newest || ! -e $kernel/version ]] || return 0
    package=$(LC_ALL=C apt-cache depends --no-recommends $EMULATED_KERNEL 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p') || true
    version=$(apt-cache show --no-all-versions "${package:-none}" 2>/dev/null | sed -n 's/^Version: //p') || true
    [[ ! -e $kernel/version || -n $version && $(<"$kernel/version") != "$package $version" ]] || return 0
    [[ -n $version ]] && unpack_kernel "$package" "$version" ||
        say "the kernel ${package:-$EMULATED_KERNEL} could not be unpacked below $venv: $SKIPPED."
}

# The files of a package that is not installed, in .venv/emulated-kernel, whole or not at all. An older one is replaced in
# a moment, as another run may be about to read it.
unpack_kernel() (
    exec 9<"$venv" >&2 </dev/null
    flock 9
    cd "$venv" || exit
    # Another run may have unpacked it in the meantime.
    [[ ! -e emulated-kernel/version || $(<emulated-kernel/version) != "$1 $2" ]] || exit 0
    say "unpacking $1 $2 (27 MB), which is not installed"
    rm -rf emulated-kernel.new && mkdir emulated-kernel.new && chmod a+rx emulated-kernel.new &&
        cd emulated-kernel.new && apt-get -o APT::Sandbox::User=root download --quiet "$1" &&
        dpkg-deb --extract "$1"_*.deb files && chmod -R a+rX files && printf '%s\n' "$1 $2" >files/version &&
        cd .. && { [[ ! -e emulated-kernel ]] || mv -T emulated-kernel emulated-kernel.new/old; } &&
        mv -T emulated-kernel.new/files emulated-kernel && rm -rf emulated-kernel.new
)

# --- .venv ----------------------------------------------------------------------------------------------------------

require_python() {
    "$system_python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
        die "$system_python is missing (./run setup installs it) or too old: Python 3.11 is needed (Debian 12, Ubuntu" \
            "24.04 or newer, or the container of docs/containers.md)."
}

# make_venv NAME FILE... : .venv with what FILE... (NAME.txt and what it includes) ask for. A change of its place, of the
# system's Python or of a file makes it stale.
make_venv() {
    local name=$1 stamp=$venv/stamp-$1 wanted
    shift
    wanted=$(printf '%s\n' "$root" "$(readlink -f $system_python)" && cd "$root" && sha256sum "$@")
    is_sound && return
    local place=$venv
    [[ -e $venv || -L $venv ]] || place=$root
    if [[ ! -w $root ]] || [[ $place == "$venv" && $(stat -c %u "$venv") != "$EUID" ]]; then
        die "$venv is missing or out of date, and belongs to $(stat -c %U "$place"): let its owner type ./run" \
            "${command/check/tests}, or clone the project for yourself."
    fi
    require_python
    # Two runs that start at once must not build the same .venv; the lock goes with the process.
    exec 9<"$root"
    flock 9
    is_sound || build_venv "$name"
    printf '%s\n' "$wanted" >"$stamp"
    exec 9<&-
}

is_sound() { [[ -x $python && -r $stamp && $(<"$stamp") == "$wanted" ]]; }

build_venv() {
    # A .venv that was copied along with its checkout has another place written into its scripts, and its packages are
    # those of one version of Python, while the name of its Python is that of the system, whatever its version.
    if [[ ! -x $python || $(head -2 "$venv/stamp-requirements" 2>/dev/null) != "$(head -2 <<<"$wanted")" ]]; then
        say "making $venv"
        # What is no folder of ours goes: a file, or a link, behind which may be the .venv of another checkout.
        [[ -d $venv && ! -L $venv ]] || rm -f -- "$venv"
        awaited "$system_python" -I -m venv --clear "$venv" || die "$venv could not be made, see above."
    fi
    keep_pips_sources
    say "installing Python packages from $1.txt (about a minute)"
    awaited "$python" -m pip install -qq --disable-pip-version-check --no-input -r "$root/$1.txt" ||
        die "pip could not install $1.txt, see above."
}

# Of pip's environment and files, what says where packages come from holds: indexes, proxies, certificates, constraints.
# Nothing else does: user, target, dry-run and the like would keep the packages from .venv.
keep_pips_sources() {
    local name key value settings
    for name in "${!PIP_@}"; do
        [[ $name == PIP_CONFIG_FILE ]] || is_pips_source "$name" || unset "$name"
    done
    settings=$("$python" -m pip config list) || die "pip cannot read its configuration, see above."
    while IFS== read -r key value; do
        name=${key##*.}
        name=PIP_${name^^}
        name=${name//-/_}
        if [[ ! -v $name ]] && is_pips_source "$name"; then
            printf -v value '%b' "${value:1:-1}"  # Python's way to write a text
            export "$name=${value//$'\n'/ }"
        fi
    done <<<"$(grep -E '^(global|install)\.' <<<"$settings" | sort --reverse)"  # what is of `pip install` alone is first
    export PIP_CONFIG_FILE=/dev/null
}

is_pips_source() {
    case ${1#PIP_} in
    INDEX_URL | EXTRA_INDEX_URL | NO_INDEX | FIND_LINKS | TRUSTED_HOST | CONSTRAINT | ONLY_BINARY | PREFER_BINARY) ;;
    PROXY | CERT | CLIENT_CERT | KEYRING_PROVIDER | USE_FEATURE | USE_DEPRECATED) ;;
    TIMEOUT | DEFAULT_TIMEOUT | RETRIES | CACHE_DIR | NO_CACHE_DIR) ;;
    *) return 1 ;;
    esac
}

# ---------------------------------------------------------------------------------------------------------------------

setup() {
    system_packages "${PACKAGES[@]}" "$@"
    make_venv requirements requirements.txt
    # Compiles the traffic generator, once per user and version of its source: a few seconds.
    PYTHONPATH=$root/libraries awaited "$python" -m ctgen --build || die "the traffic generator was not compiled."
}

setup_tests() {
    setup "${TEST_PACKAGES[@]}"
    if ! command -v chromium >/dev/null && apt-cache show $BROWSER >/dev/null 2>&1; then
        install_packages $BROWSER || say "$BROWSER could not be installed: the tests that need a browser will be skipped."
    fi
    make_venv requirements-dev requirements.txt requirements-dev.txt
}
