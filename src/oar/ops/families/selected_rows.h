// The layer for selected rows.
#pragma once

namespace oar {

// From here on: ops that accept selected rows get them as they are, two of them are added by joining
// their rows, and everything else sees dense tensors.
void install_selected_rows_layer();

}  // namespace oar
