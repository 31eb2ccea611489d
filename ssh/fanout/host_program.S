# The programs for hosts inside dtool: DTOOL_HOST_FILE is where the build has put the one for this processor, DTOOL_HOST_FILE_2 the
# one for the other, where it could be built.
    .section .rodata
    .global dtool_host_begin
    .global dtool_host_end
    .global dtool_host_2_begin
    .global dtool_host_2_end
    .balign 16
dtool_host_begin:
    .incbin DTOOL_HOST_FILE
dtool_host_end:
    .balign 16
dtool_host_2_begin:
#ifdef DTOOL_HOST_FILE_2
    .incbin DTOOL_HOST_FILE_2
#endif
dtool_host_2_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
