// Loops over channels for AVX-512. Only what this file defines may be compiled for it: an inline function
// of another header could end up in the program's only copy, and crash older machines.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,fma")
#endif

#include "oar/backend/cpu/rows/channel_micro.h"

namespace oar::cpu {

#if defined(__x86_64__)
const ChannelTable<float> kAvx512ChannelsFloat = Channels<float, 64>::table();
const ChannelTable<double> kAvx512ChannelsDouble =
    OAR_AVX512_DOUBLES((Channels<double, 64>::table()));
#else
const ChannelTable<float> kAvx512ChannelsFloat{};
const ChannelTable<double> kAvx512ChannelsDouble{};
#endif

}  // namespace oar::cpu
