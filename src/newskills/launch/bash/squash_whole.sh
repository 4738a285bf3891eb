# whole FILE: is a squashfs with all of its bytes. mksquashfs writes the superblock last, so that an import that was
# interrupted has none; one that was copied in part is shorter than its superblock says.
whole() {
    local magic major used size
    [[ -f $1 && -r $1 ]] || return 1
    magic=$(head -c 4 -- "$1" | tr -d '\0')
    [[ $magic == hsqs ]] || return 1
    major=$(od -An -tu2 -j28 -N2 -- "$1" | tr -d ' ')
    used=$(od -An -tu8 -j40 -N8 -- "$1" | tr -d ' ')
    size=$(stat -Lc %s -- "$1") || return 1
    [[ $major == 4 && $used =~ ^[0-9]{3,18}$ && $size -ge $used ]]
}
