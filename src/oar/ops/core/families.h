// The built-in families; the list itself is generated from the files of this folder.
#pragma once

namespace oar {
class Registry;
void register_families(Registry& registry);
}  // namespace oar
