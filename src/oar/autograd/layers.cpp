#include "oar/autograd/layers.h"

#include "oar/autograd/record.h"
#include "oar/autograd/transform.h"

namespace oar {

void install_autograd_layers() {
  install_layer(kRecording, autograd_layer);
  install_layer(kWrapped, transform_layer);
}

}  // namespace oar
