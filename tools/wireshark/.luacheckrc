-- SPDX-License-Identifier: GPL-2.0-or-later
-- What every Lua of 5.2 to 5.4 has, and what Wireshark adds.
std = "min"
max_line_length = 100
read_globals = {
    "bit32", -- only in 5.2; the plugin asks before it uses it
    "Dissector", "Field", "NSTime", "Pref", "Proto", "ProtoExpert", "ProtoField",
    "UInt64", "base", "expert", "frametype", "register_postdissector",
}
