// Loops over channels for the oldest machine that is supported, and the choice between the sets.
#include <type_traits>

#include "oar/backend/cpu/instruction_set.h"
#include "oar/backend/cpu/rows/channel_micro.h"

namespace oar::cpu {

const ChannelTable<float> kBaseChannelsFloat = Channels<float, 32>::table();
const ChannelTable<double> kBaseChannelsDouble = Channels<double, 32>::table();

template <class T>
const ChannelTable<T>& channel_table() {
  static const bool avx512 = use_avx512();
  if constexpr (std::is_same_v<T, float>)
    return avx512 && kAvx512ChannelsFloat.moments ? kAvx512ChannelsFloat : kBaseChannelsFloat;
  else
    return avx512 && kAvx512ChannelsDouble.moments ? kAvx512ChannelsDouble : kBaseChannelsDouble;
}
template const ChannelTable<float>& channel_table<float>();
template const ChannelTable<double>& channel_table<double>();

}  // namespace oar::cpu
