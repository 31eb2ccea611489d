// SPDX-License-Identifier: MIT
// Stands in for gloo's header, whose presence tells ranks/process_group.cpp that a device listens
// as long as it lives: so does the gloo of every PyTorch that can be used from pip. See context.h.
#pragma once
