// The layer for tensors made of selected rows.
#pragma once

namespace oar {

// From here on: ops that take selected rows as they are get them so, two of them are added by joining
// their rows, and everything else sees dense tensors.
void install_selected_rows_layer();

}  // namespace oar
