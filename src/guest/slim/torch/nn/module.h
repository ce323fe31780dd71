// SPDX-License-Identifier: Apache-2.0
// Not to be had without all of torch's headers. A file that is not there ends the attempt at once,
// where errors would come only after seconds.
#include <drk/with_torchs_own_headers>
