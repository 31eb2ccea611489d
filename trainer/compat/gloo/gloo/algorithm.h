// SPDX-License-Identifier: MIT
// Stands in for gloo's header, of which c10d/ProcessGroupGloo.hpp uses nothing. See context.h.
#pragma once
