# shellcheck shell=bash disable=SC2154
# Sourced by ./run: installs what is missing, quickly skips what is there. Uses its root, venv, python, say and die.

# Not `python3`: a pyenv shim would tie the .venv to one user's home, which other users cannot read.
system_python=/usr/bin/python3

readonly PACKAGES=(openvswitch-switch-dpdk iproute2 iptables nftables conntrack ethtool procps util-linux
    python3-venv gcc libc6-dev)
readonly TEST_PACKAGES=(tshark openssh-server openssh-client mmdebstrap)

# Who we are: the number, where no passwd entry has a name for it.
user() { id -un 2>/dev/null || true; }

# --- system packages ------------------------------------------------------------------------------------------------

require_x86_64() {
    local machine
    machine=$(uname -m)
    [[ $machine == x86_64 ]] ||
        die $EXIT_MISSING "this is a $machine machine, and the software traffic generator works on x86-64 only."
}

# DPDK's drivers carry its ABI number in their names (librte-net-memif23 on Debian 12): that of the OVS which is
# installed or would be. Empty when apt does not know OVS yet.
dpdk_abi() {
    local depends
    depends=$(dpkg-query --show --showformat '${Depends}' openvswitch-switch-dpdk 2>/dev/null || true)
    [[ -n $depends ]] || depends=$(apt-cache depends openvswitch-switch-dpdk 2>/dev/null || true)
    [[ $depends =~ librte-eal([0-9][0-9a-z.]*) ]] && printf '%s' "${BASH_REMATCH[1]}"
    return 0
}

# The packages among "$@" that are not installed, one a line. Asks dpkg, not apt: it answers in milliseconds.
not_installed() {
    local installed package
    installed=$(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
    for package in "$@"; do
        grep -qxF "$package installed" <<<"$installed" || printf '%s\n' "$package"
    done
}

# The names of DPDK's driver packages: memif, and af_packet for OVS over veth. Without mempool-ring OVS says "Failed to
# create mempool".
driver_packages() {
    local abi
    abi=$(dpdk_abi)
    # Without a known ABI: apt's own regular expressions, for a command that an administrator can type.
    [[ -n $abi ]] || abi='[0-9]+$'
    printf '%s\n' "librte-net-memif$abi" "librte-mempool-ring$abi" "librte-net-af-packet$abi"
}

# Runs "$@" as root. Fails when that cannot be had without asking a question nobody is there to answer.
as_root() {
    if ((EUID == 0)); then
        "$@"
    elif [[ -t 0 ]]; then
        sudo -- "$@"
    else
        sudo -n -- "$@"
    fi
}

# Whether root can be had, without asking a question that nobody is there to answer.
may_be_root() { ((EUID == 0)) || { command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; }; }

# Runs "$@"; what it says goes to stderr as long as somebody reads that: dpkg would fail where nobody does.
relayed() { "$@" </dev/null 2>&1 | { cat >&3 || cat >/dev/null; } 3>&2 2>/dev/null; }

# Runs a program that takes long: a signal ends it at once, and the kernel ends it when this ends, whatever ends this.
awaited() {
    setpriv --pdeathsig KILL -- "$@" </dev/null >&2 &
    wait "$!"
}

# apt without questions, and without starting the distribution's OVS: SYSTEMD_OFFLINE (systemd) and RUNLEVEL (SysV)
# make the packages' start-up calls do nothing. A daemon that runs already is left alone. In a container without
# either of them the package's own script decides; installing a policy-rc.d would be a change to the host.
readonly APT=(env DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 RUNLEVEL=1
    apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 --quiet --yes)

# Whether apt's lists have been.
refreshed=

# install_packages PACKAGE... : makes sure that these and DPDK's drivers are there.
install_packages() {
    local missing
    mapfile -t wanted < <(printf '%s\n' "$@"; driver_packages)
    missing=$(not_installed "${wanted[@]}")
    [[ -n $missing ]] || return 0

    if [[ $EUID -ne 0 ]] && ! command -v sudo >/dev/null; then
        tell_administrator $missing
    fi
    say "refreshing apt's package lists to install: ${missing//$'\n'/ }"
    relayed as_root "${APT[@]}" update || tell_administrator $missing
    refreshed=yes
    # Only now apt may know which OVS, and so which DPDK, this release has.
    mapfile -t wanted < <(printf '%s\n' "$@"; driver_packages)
    missing=$(not_installed "${wanted[@]}")
    apt-cache show openvswitch-switch-dpdk >/dev/null 2>&1 || die $EXIT_MISSING \
        "apt knows no package openvswitch-switch-dpdk: enable the component that has it (Ubuntu: universe)."
    say "installing ${missing//$'\n'/ } (about a minute)"
    # shellcheck disable=SC2086  # one word per package
    relayed as_root "${APT[@]}" install --no-install-recommends $missing || tell_administrator $missing
    # The tests start an sshd of their own. One that nobody asked for must not listen after the next boot either.
    if grep -qx openssh-server <<<"$missing" && command -v systemctl >/dev/null; then
        as_root env SYSTEMD_OFFLINE=1 systemctl disable ssh.service ssh.socket >/dev/null 2>&1 || true
    fi
}

tell_administrator() {
    say "system packages are missing and could not be installed. An administrator can, with:"
    {
        printf '  apt-get update && apt-get install --no-install-recommends'
        printf " '%s'" "$@"
        printf '\n'
    } >&2 2>/dev/null || true
    exit $EXIT_MISSING
}

system_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        die $EXIT_MISSING "this system has no apt-get and dpkg-query, with which Open vSwitch with DPDK and the rest are \
installed: use the container of Debian 13 (docs/containers.md)."
    fi
    install_packages "$@"
}

# A browser for the tests of the report, 100 MB. Only Debian has it as a package; where it is missing, those tests are
# skipped and say so.
browser() {
    local package=chromium-headless-shell
    command -v chromium >/dev/null && return 0
    [[ -n $(not_installed $package) ]] && apt-cache show $package >/dev/null 2>&1 || return 0
    say "installing $package (about a minute)"
    relayed as_root "${APT[@]}" install --no-install-recommends $package ||
        say "$package could not be installed: the tests that need a browser will be skipped."
}

# What the emulated machine needs, whose tests count instructions: QEMU, a compiler and a shell for what runs in it, and
# the kernel of Debian's cloud images, unpacked below .venv and not installed. CONNTRACK_SLA_EMULATED=no declines it;
# where something is missing, those tests are skipped and say so. `emulated newest` also looks for a newer kernel.
readonly EMULATED_PACKAGES=(qemu-system-x86 busybox-static dash tcc) EMULATED_KERNEL=linux-image-cloud-amd64
readonly WITHOUT_EMULATED='the tests with an emulated machine will be skipped (CONNTRACK_SLA_EMULATED=no declines it)'
emulated() {
    local missing
    if [[ ${CONNTRACK_SLA_EMULATED:-yes} == no ]]; then
        say "the emulated machine is declined (CONNTRACK_SLA_EMULATED=no): its tests will be skipped."
        return 0
    fi
    missing=$(not_installed "${EMULATED_PACKAGES[@]}")
    if [[ -n $missing ]]; then
        if ! may_be_root; then
            say "${missing//$'\n'/ } can be installed by root only, with ./run setup: $WITHOUT_EMULATED."
            return 0
        fi
        say "installing ${missing//$'\n'/ } for the emulated machine (90 MB; CONNTRACK_SLA_EMULATED=no declines it)"
        [[ -n $refreshed ]] || relayed as_root "${APT[@]}" update || true
        # shellcheck disable=SC2086  # one word per package
        relayed as_root "${APT[@]}" install --no-install-recommends $missing || {
            say "they could not be installed: $WITHOUT_EMULATED."
            return 0
        }
    fi
    [[ ${1:-} != newest && -e $venv/emulated-kernel/version ]] || emulated_kernel
}

# Unpacks the kernel that apt has now, once for each version of it. One that is there already is kept where apt has none.
emulated_kernel() {
    local target=$venv/emulated-kernel new=$venv/emulated-kernel.new package version status=0
    package=$(apt-cache depends --no-recommends $EMULATED_KERNEL 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p') || true
    version=$(apt-cache show --no-all-versions "${package:-none}" 2>/dev/null | sed -n 's/^Version: //p') || true
    [[ ! -e $target/version || -n $version && $(<"$target/version") != "$package $version" ]] || return 0
    if [[ -z $version ]]; then
        say "apt knows no package $EMULATED_KERNEL: $WITHOUT_EMULATED."
    elif [[ ! -w $venv ]]; then
        say "the kernel of the emulated machine is unpacked below $venv, which $(stat -c %U "$venv") may change, with \
./run setup: $WITHOUT_EMULATED."
    else
        exec 9<"$venv"
        flock 9
        say "unpacking $package $version (27 MB), which is not installed"
        unpack_kernel "$new" "$package" || status=$?
        if ((status == 0)); then
            printf '%s\n' "$package $version" >"$new/files/version"
            rm -rf "$target" && mv -T "$new/files" "$target"
        else
            say "$package could not be unpacked: $WITHOUT_EMULATED."
        fi
        rm -rf "$new"
        exec 9<&-
    fi
}

# unpack_kernel FOLDER PACKAGE: the files of a package, in FOLDER/files.
unpack_kernel() {
    rm -rf "$1" && mkdir "$1" && chmod a+rx "$1" || return 1
    (cd "$1" && apt-get -o APT::Sandbox::User=root download --quiet "$2" && dpkg-deb --extract "$2"_*.deb files && chmod -R a+rX files) \
        </dev/null >&2
}

# --- .venv ----------------------------------------------------------------------------------------------------------

require_python() {
    "$system_python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die $EXIT_MISSING "$system_python is too old: Python 3.11 is needed (Debian 12, Ubuntu 24.04 or newer, or \
the container of docs/containers.md)."
}

# What a .venv was made for: its place, the Python, and the requirements. Any change makes it stale.
stamp_of() {
    printf '%s\n' "$root" "$(readlink -f $system_python)"
    (cd "$root" && sha256sum "$@")
}

declare -rA command_for=([requirements]=setup [requirements-dev]=tests)

# make_venv NAME FILE... : .venv with what FILE... (NAME.txt and what it includes) ask for.
make_venv() {
    local name=$1 stamp=$venv/stamp-$1 wanted
    shift
    wanted=$(stamp_of "$@")
    if is_sound "$stamp" "$wanted"; then
        return 0
    fi
    local place=$root owner theirs=
    [[ ! -e $venv && ! -L $venv ]] || place=$venv
    owner=$(stat -c %U "$place")
    [[ $(stat -c %u "$place") == "$EUID" ]] || theirs=yes
    if [[ -e $venv && ! -r $venv/bin/python && $theirs ]]; then
        die $EXIT_MISSING "$venv belongs to $owner and cannot be read by $(user): clone the project for yourself."
    fi
    if [[ ! -w $root || $theirs && ( -e $venv || $EUID -ne 0 ) ]]; then
        die $EXIT_MISSING "$venv is missing or out of date, and $(user) may not change what belongs to $owner: let \
$owner type \`./run ${command_for[$name]}\`, or clone the project for yourself."
    fi
    require_python
    # Two runs that start at once must not build the same .venv; the lock goes with the process.
    exec 9<"$root"
    flock 9
    if ! is_sound "$stamp" "$wanted"; then
        build_venv "$name"
        printf '%s\n' "$wanted" >"$stamp"
    fi
    exec 9<&-
}

# Whether .venv has what STAMP WANTED say, and its Python starts. A damaged package shows when it is imported: then
# ctbench.cli.error_boundary removes the stamp.
is_sound() { [[ -f $1 && -r $1 && $(<"$1") == "$2" ]] && starts; }

starts() { [[ -x $python && $("$python" -I -c 'print("yes")' 2>/dev/null) == yes ]]; }

build_venv() {
    local place=
    # A .venv that was copied along with its checkout has another place written into its scripts; one without a stamp is
    # damaged, or was not finished.
    [[ -r $venv/stamp-requirements ]] && place=$(head -1 "$venv/stamp-requirements")
    if [[ $place != "$root" ]] || ! starts ||
        ! "$python" -m pip --version >/dev/null 2>&1; then
        say "making $venv"
        # What is no folder of ours goes: a file, or a link, behind which may be the .venv of another checkout.
        [[ -d $venv && ! -L $venv ]] || rm -f -- "$venv"
        awaited "$system_python" -m venv --clear "$venv" || die $EXIT_MISSING "$venv could not be made, see above."
    fi
    keep_pips_sources
    say "installing Python packages from $1.txt (about a minute)"
    awaited "$python" -m pip install -qq --disable-pip-version-check --no-input --no-compile -r "$root/$1.txt" ||
        die $EXIT_MISSING "pip could not install $1.txt, see above."
    # On all CPUs, which pip does not: users who may not write here have nowhere to keep what they compile.
    awaited "$python" -m compileall -qq -j 0 "$venv/lib" || true  # files of templates are no Python
}

# Of pip's environment and files, what says where packages come from holds: indexes, proxies, certificates, constraints.
# Nothing else does: user, target, dry-run and the like would keep the packages from .venv.
keep_pips_sources() {
    local name key value settings
    for name in "${!PIP_@}"; do
        [[ $name == PIP_CONFIG_FILE ]] || is_pips_source "$name" || unset "$name"
    done
    settings=$("$python" -m pip config list) || die $EXIT_MISSING "pip cannot read its configuration, see above."
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

# Compiles the traffic generator, once per user and version of its source: a few seconds.
compile_generator() { PYTHONPATH=$root/libraries awaited "$python" -m ctbench.traffic.software; }

setup() {
    require_x86_64
    system_packages "${PACKAGES[@]}"
    make_venv requirements requirements.txt
    compile_generator || exit
}

setup_tests() {
    require_x86_64
    system_packages "${PACKAGES[@]}" "${TEST_PACKAGES[@]}"
    browser
    make_venv requirements requirements.txt
    make_venv requirements-dev requirements.txt requirements-dev.txt
    compile_generator || exit
}
