# shellcheck shell=bash
#
# Debian systems of their own, for what must not depend on this machine: made by
# debootstrap, used through namespaces, so that whatever ran or was mounted there
# is gone with its first process.
#
# To be sourced after setup.sh, and used in a script that rpin_require_root has
# started.
#
# Environment: RPIN_DEBIAN, the mirror.

RPIN_DEBIAN=${RPIN_DEBIAN:-http://deb.debian.org/debian}

# rpin_make_root directory suite [line of sources.list ...]: a small system; the
# lines may say "$mirror". apt does not ask, and keeps no copies of packages.
rpin_make_root() {
  local root=$1 suite=$2 log=$RPIN_WORK/debootstrap.log mirror=$RPIN_DEBIAN line
  shift 2
  # Its script for sid is the one for every suite that it does not know yet.
  if ! unshare --mount debootstrap --variant=minbase \
    --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
    "$suite" "$root" "$mirror" sid >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    rpin_die "there is no root of $suite"
  fi
  for line in "deb \$mirror $suite main" "$@"; do
    printf '%s\n' "${line//\$mirror/$mirror}"
  done >"$root/etc/apt/sources.list"
  printf '%s\n' 'Acquire::Check-Date "false";' 'Acquire::Check-Valid-Until "false";' \
    'APT::Install-Recommends "false";' 'APT::Keep-Downloaded-Packages "false";' \
    'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };' \
    >"$root/etc/apt/apt.conf.d/99test-root"
  # nobody needs it after a crash
  printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/locale/*' \
    >"$root/etc/dpkg/dpkg.cfg.d/test-root"
  # start no service
  printf '%s\n' '#!/bin/sh' 'exit 101' >"$root/usr/sbin/policy-rc.d"
  chmod 755 "$root/usr/sbin/policy-rc.d"
}

# The first process in a root. When it ends, so does everything in there.
rpin_root_init='
trap "exit 143" HUP INT TERM
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts /dev/pts
"$@" &
wait $!'

# rpin_in_root directory [NAME=value ...] command ...: runs it as root in there, in
# /src if there is one. The network is this machine's, and so are the certificates
# that it needs beyond those of Debian.
rpin_in_root() {
  local root=$1 name environment=()
  shift
  for name in http_proxy https_proxy no_proxy RPIN_JOBS RPIN_TIMEOUT; do
    if [ -n "${!name:-}" ]; then
      environment+=("$name=${!name}")
    fi
  done
  if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then
    cp -L "$NODE_EXTRA_CA_CERTS" "$root/etc/extra-certificates.crt"
    environment+=(NODE_EXTRA_CA_CERTS=/etc/extra-certificates.crt)
  fi
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  mkdir -p "$root/src"
  # RPIN_WORK: so that the cleanup finds the first process
  unshare --mount --pid --ipc --uts --fork --kill-child --root="$root" --wd=/src --mount-proc \
    env -i '--default-signal=INT,QUIT' PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive RPIN_WORK="$RPIN_WORK" \
    "${environment[@]}" \
    bash -c "$rpin_root_init" bash env "$@" </dev/null
}

# rpin_source_into_root directory: the checkout as it is, at /src.
rpin_source_into_root() {
  rm -rf -- "$1/src"
  mkdir -p "$1/src"
  rpin_source_files | tar -C "$RPIN_ROOT" --null --no-recursion -T - -cf - |
    tar -C "$1/src" --no-same-owner -xf -
}
