# SPDX-License-Identifier: GPL-2.0-only
# Debian packages without touching the system's own apt: a private tree of
# package lists in the cache, for the suites that have the kernels and tools
# the virtual machine needs. Works without root.
# shellcheck shell=bash disable=SC2034,SC2154 # variables shared with the scripts

debian_suites=(trixie trixie-backports)
debian_arch=amd64
debian_tree=$cache/apt
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The addresses in the system's apt sources that may be a mirror of Debian's
# main archive, both file formats, likeliest first.
debian_mirrors() {
    local -a files=()
    local f
    for f in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list \
        /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list; do
        [[ -r $f ]] && files+=("$f")
    done
    ((${#files[@]})) || return 0
    awk '
        function flush(   i, j) {
            if (types ~ /(^| )deb( |$)/ && enabled !~ /^(no|false|0)/)
                for (i = split(uris, u, " "); i > 0; i--)
                    for (j = split(suites, s, " "); j > 0; j--)
                        offer(u[i], s[j], comps)
            types = uris = suites = comps = enabled = field = ""
        }
        function offer(uri, suite, comps) {
            if (suite !~ /^(bookworm|trixie|forky|sid|unstable|testing|stable|oldstable)(-updates|-backports)?$/ ||
                (" " comps " ") !~ / main / || uri ~ /security|^cdrom/)
                return
            sub(/\/+$/, "", uri)
            if (!seen[uri]++) print uri
        }
        FNR == 1 { flush(); deb822 = FILENAME ~ /\.sources$/ }
        /^[ \t]*#/ { next }
        deb822 && /^[ \t]*$/ { flush(); next }
        deb822 {
            value = $0
            if (value ~ /^[ \t]/) sub(/^[ \t]+/, "", value)
            else {
                field = tolower(value); sub(/:.*/, "", field)
                sub(/^[^:]*:[ \t]*/, "", value)
            }
            if (field == "types") types = types " " value
            if (field == "uris") uris = uris " " value
            if (field == "suites") suites = suites " " value
            if (field == "components") comps = comps " " value
            if (field == "enabled") enabled = tolower(value)
            next
        }
        $1 == "deb" {
            sub(/\[[^]]*\]/, "")
            rest = ""
            for (n = 4; n <= NF; n++) rest = rest " " $n
            offer($2, $3, rest)
        }
        END { flush() }
    ' "${files[@]}"
}

# Set apt_options for a private tree in DIR that believes nothing is installed.
debian_options() {
    apt_options=(
        -q
        -o "Dir::State=$1/state" -o "Dir::State::status=$1/status"
        -o "Dir::Cache=$1/cache" -o "Dir::Etc::sourcelist=$1/sources.list"
        -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null
        -o APT::Install-Recommends=false -o APT::Get::List-Cleanup=false
        -o APT::Sandbox::User=root -o Acquire::Languages=none
        -o Acquire::Retries=2 -o "APT::Architecture=$debian_arch" -o "APT::Architectures=$debian_arch"
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
    )
}

debian_write_sources() {
    local dir=$1 mirror=$2 option='' suite
    [[ -r $debian_keyring ]] && option="[signed-by=$debian_keyring] "
    for suite in "${debian_suites[@]}"; do
        printf 'deb %s%s %s main\n' "$option" "$mirror" "$suite"
    done >"$dir/sources.list"
}

debian_make_tree() {
    local dir=$1 mirror
    local -a mirrors
    mkdir -p "$dir"/{state/lists/partial,cache/archives/partial}
    : >"$dir/status"
    debian_options "$dir"
    mapfile -t mirrors < <(debian_mirrors)
    if ((${#mirrors[@]} == 0)); then
        say "no Debian mirror in /etc/apt/sources.list or /etc/apt/sources.list.d: add one that has ${debian_suites[0]} main"
        return 1
    fi
    for mirror in "${mirrors[@]}"; do
        debian_write_sources "$dir" "$mirror"
        if apt-get "${apt_options[@]}" -o APT::Update::Error-Mode=any update >"$dir/log" 2>&1; then
            return 0
        fi
    done
    say "cannot read Debian's package lists (${debian_suites[*]}): $(grep -m1 '^[EW]:' "$dir/log" || echo "see apt-get's own messages")"
    return 1
}

debian_refresh() {
    local new
    fresh "$debian_tree/log" 1440 && return 0
    rm -rf "$debian_tree".new.*
    new=$(mktemp -d "$debian_tree.new.XXXXXX")
    if ! debian_make_tree "$new"; then
        rm -rf "$new"
        return 1
    fi
    rm -rf "$debian_tree"
    mv -T "$new" "$debian_tree"
}

# Make package lists not older than a day usable through apt_options.
debian_lists() {
    have apt-get || {
        say "apt-get is not here: packages of Debian cannot be had"
        return 1
    }
    if ! fresh "$debian_tree/log" 1440; then
        say "reading Debian's package lists"
        with_lock apt debian_refresh || return 1
    fi
    debian_options "$debian_tree"
}

# debian_unpack ROOT PACKAGE...: fetch these packages and unpack them in ROOT.
debian_unpack() { with_lock apt debian_unpack_locked "$@"; }

debian_unpack_locked() {
    local root=$1 tmp deb
    shift
    tmp=$(mktemp -d "$root/.debs.XXXXXX")
    if ! (cd "$tmp" && apt-get "${apt_options[@]}" download "$@") >"$tmp/log" 2>&1; then
        say "cannot fetch $*: $(grep -m1 '^E:' "$tmp/log" || true)"
        return 1
    fi
    for deb in "$tmp"/*.deb; do
        dpkg -x "$deb" "$root" || return 1
    done
    rm -rf "$tmp"
}

# The packages with all that they need, as package=version.
debian_closure() {
    apt-get "${apt_options[@]}" -y -s install "$@" | awk '$1 == "Inst" { sub(/^\(/, "", $3); print $2 "=" $3 }'
}
