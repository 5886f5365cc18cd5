package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"palimpsest/cmd/palimpsest/signature"
)

// Set by make release.
var (
	released   string // the semantic version, such as 1.0.0
	releaseKey string // the public key that signs releases, in minisign's format
)

// version returns the version of a release, or the source revision of another build.
func version() string {
	if released != "" {
		return released
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}

func versionCommand() *cobra.Command {
	var file, sign, key string
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or check the signature of a release's file with --verify FILE",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if file == "" {
				fmt.Fprintf(command.OutOrStdout(), "palimpsest %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
				return nil
			}
			comment, err := verifySigned(file, sign, key)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: signature is valid (%s)\n", file, comment)
			return nil
		},
	}
	command.Flags().StringVar(&file, "verify", "", "file of a release whose signature is checked")
	command.Flags().StringVar(&sign, "signature", "", "the signature's file; FILE.minisig if absent")
	command.Flags().StringVar(&key, "key", "", "public key, as minisign writes it, or a file with it; the key built into a release if absent")
	return command
}

// verifySigned checks a file against its signature and returns the signed comment.
func verifySigned(file, signed, key string) (comment string, err error) {
	if key == "" {
		key = releaseKey
	}
	if key == "" {
		return "", errors.New("this program was built without the key of releases: name the public key with --key")
	}
	if content, err := os.ReadFile(key); err == nil { //nolint:gosec // the caller names it
		key = string(content)
	}
	public, err := signature.ParseKey(key)
	if err != nil {
		return "", err
	}
	if signed == "" {
		signed = file + ".minisig"
	}
	text, err := os.ReadFile(signed) //nolint:gosec // the caller names it
	if err != nil {
		return "", fmt.Errorf("signature: %w; download it beside the file, or name it with --signature", err)
	}
	content, err := os.Open(file) //nolint:gosec // the caller names it
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }()
	return public.Verify(content, string(text))
}
