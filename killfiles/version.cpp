// SPDX-License-Identifier: MIT
#include "killfiles/version.h"

namespace dtool::killfiles {

std::string_view dtool_version() {
  return DTOOL_VERSION;
}

}  // namespace dtool::killfiles
