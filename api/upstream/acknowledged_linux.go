package upstream

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// acknowledged returns how many bytes the peer's system has acknowledged on a connection; 0 if unknown.
func acknowledged(c net.Conn) (taken uint64) {
	under, is := c.(syscall.Conn)
	if !is {
		return 0
	}
	raw, err := under.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Control(func(file uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(file), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			taken = info.Bytes_acked
		}
	})
	if err != nil {
		return 0
	}
	return taken
}
