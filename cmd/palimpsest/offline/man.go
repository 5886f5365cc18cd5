package offline

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands returns the commands.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{replayCommand(), verifyCommand(), manCommand(version)}
}

// manCommand writes manual pages of a version of the program from the definitions of the commands.
func manCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use: "man [FOLDER]", Short: "Print the manual page of the program, or write those of all commands into a folder", Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				_, err := io.WriteString(command.OutOrStdout(), manPage(command.Root(), version))
				return err
			}
			if err := os.MkdirAll(arguments[0], 0o755); err != nil { //nolint:gosec // everyone may read them
				return err
			}
			return writeMan(command.Root(), arguments[0], version)
		},
	}
}

// writeMan writes the manual pages of a command and its subcommands.
func writeMan(command *cobra.Command, folder, version string) error {
	path := filepath.Join(folder, manName(command)+".1")
	if err := os.WriteFile(path, []byte(manPage(command, version)), 0o644); err != nil { //nolint:gosec // everyone may read them
		return err
	}
	for _, below := range command.Commands() {
		if !below.IsAvailableCommand() {
			continue
		}
		if err := writeMan(below, folder, version); err != nil {
			return err
		}
	}
	return nil
}

func manName(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

// manPage returns a command's manual page, in the macros of man(7).
func manPage(command *cobra.Command, version string) string {
	var page strings.Builder
	fmt.Fprintf(&page, ".TH %q 1 \"\" %q %q\n", strings.ToUpper(manName(command)), "palimpsest "+version, "Palimpsest")
	fmt.Fprintf(&page, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n%s\n", roff(manName(command)), roff(command.Short), roff(command.UseLine()))
	if command.Long != "" {
		fmt.Fprintf(&page, ".SH DESCRIPTION\n%s\n", roff(command.Long))
	}
	manFlags(&page, "OPTIONS", command.NonInheritedFlags())
	manFlags(&page, "OPTIONS OF EVERY COMMAND", command.InheritedFlags())
	var names []string
	if command.HasParent() {
		names = append(names, manName(command.Parent()))
	}
	for _, below := range command.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, manName(below))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(&page, ".SH SEE ALSO\n%s(1)\n", roff(strings.Join(names, "(1), ")))
	}
	return page.String()
}

func manFlags(page *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(page, ".SH %s\n", title)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		fmt.Fprintf(page, ".TP\n%s\n%s\n", roff(strings.TrimSpace(name+" "+kind)), roff(usage))
	})
}

// roff escapes text so that roff sees no macro in it and every character is ASCII.
func roff(text string) string {
	var escaped strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			escaped.WriteString(`\e`)
		case r == '-':
			escaped.WriteString(`\-`)
		case r > unicode.MaxASCII:
			fmt.Fprintf(&escaped, `\[u%04X]`, r)
		default:
			escaped.WriteRune(r)
		}
	}
	lines := strings.Split(escaped.String(), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
