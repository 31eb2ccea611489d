// SPDX-License-Identifier: MIT
// Puts a code tree in its place whose files were brought aside, to where the folder's own are not
// touched: a push that is interrupted leaves the old tree, and the next one goes on from there.
#pragma once

#include "ssh/wire/push.h"

namespace dtool::host {

PlaceReply place_tree(const PlaceRequest& request);

}  // namespace dtool::host
