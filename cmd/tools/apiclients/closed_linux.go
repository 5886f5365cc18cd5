package apiclients

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Sizes and names of rtnetlink, from linux/rtnetlink.h.
const (
	linkMessageSize = 32 // nlmsghdr and ifinfomsg
	loopbackIndex   = 1  // lo is the first link of every network namespace
)

// CloseNetwork starts a command in its own network, with only a loopback interface. That is down, so the
// command calls OpenLoopback first. Its processes get their own namespace too, so that a client's daemons
// end with the command.
func CloseNetwork(command *exec.Cmd) {
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGTERM}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		// Without root, the network belongs to a user namespace with our own user and group, and the right
		// to bring the loopback up.
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attributes.AmbientCaps = []uintptr{capNetAdmin}
	}
	command.SysProcAttr = attributes
}

// capNetAdmin is CAP_NET_ADMIN of linux/capability.h.
const capNetAdmin = 12

// OpenLoopback brings up the loopback of this process's network.
func OpenLoopback() error {
	socket, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	defer func() { _ = syscall.Close(socket) }()

	kernel := &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}
	if err := syscall.Sendto(socket, linkUp(loopbackIndex), 0, kernel); err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	answer := make([]byte, syscall.Getpagesize())
	read, _, err := syscall.Recvfrom(socket, answer, 0)
	if err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(answer[:read])
	if err != nil {
		return fmt.Errorf("bring up the loopback: %w", err)
	}
	for _, message := range messages {
		if message.Header.Type != syscall.NLMSG_ERROR || len(message.Data) < 4 {
			continue
		}
		// The kernel answers with a negative errno in 32 bits; 0 acknowledges.
		if code := -binary.NativeEndian.Uint32(message.Data); code != 0 {
			return fmt.Errorf("bring up the loopback: %w", syscall.Errno(code))
		}
	}

	return nil
}

// linkUp is the message that asks the kernel to bring up a link and to acknowledge that.
func linkUp(index uint32) []byte {
	order := binary.NativeEndian
	message := make([]byte, 0, linkMessageSize)
	message = order.AppendUint32(message, linkMessageSize)
	message = order.AppendUint16(message, syscall.RTM_NEWLINK)
	message = order.AppendUint16(message, syscall.NLM_F_REQUEST|syscall.NLM_F_ACK)
	message = order.AppendUint32(message, 1) // sequence
	message = order.AppendUint32(message, 0) // the kernel fills in the sender
	message = order.AppendUint32(message, syscall.AF_UNSPEC)
	message = order.AppendUint32(message, index)
	message = order.AppendUint32(message, syscall.IFF_UP)
	message = order.AppendUint32(message, syscall.IFF_UP)

	return message
}
