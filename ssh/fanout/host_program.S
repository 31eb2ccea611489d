// SPDX-License-Identifier: MIT
# The programs for hosts inside dtool, each as it is and compressed: DTOOL_HOST_FILE is where the build has put the one for this
# processor, DTOOL_HOST_FILE_2 the one for the other, where it could be built. The compressed ones are beside them.
    .section .rodata
    .macro begin name
    .global \name\()_begin
    .global \name\()_end
    .balign 16
\name\()_begin:
    .endm

    begin dtool_host
    .incbin DTOOL_HOST_FILE
dtool_host_end:
    begin dtool_host_gz
    .incbin DTOOL_HOST_FILE_GZ
dtool_host_gz_end:
    begin dtool_host_2
#ifdef DTOOL_HOST_FILE_2
    .incbin DTOOL_HOST_FILE_2
#endif
dtool_host_2_end:
    begin dtool_host_2_gz
#ifdef DTOOL_HOST_FILE_2
    .incbin DTOOL_HOST_FILE_2_GZ
#endif
dtool_host_2_gz_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
