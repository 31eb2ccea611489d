# dtool-host inside dtool: DTOOL_HOST_FILE is where the build has put it.
    .section .rodata
    .global dtool_host_begin
    .global dtool_host_end
    .balign 16
dtool_host_begin:
    .incbin DTOOL_HOST_FILE
dtool_host_end:
    .byte 0
    .section .note.GNU-stack,"",%progbits
