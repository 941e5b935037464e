package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/pciids"
)

// versionCommand prints what this is, and the licence of the list of names that is in it.
func versionCommand(env Env) *cobra.Command {
	var licenses bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version",
		Example: fmt.Sprintf(`  %[1]s version
  # Whose list of names it has, and under which licence
  %[1]s version --licenses`, env.Name),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if licenses {
				_, err := fmt.Fprintln(env.Stdout, pciids.License())
				return err
			}
			ids, err := pciids.Open()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Stdout, "%s %s\nnames of PCI hardware: %s\n", program, env.Version, ids.Version())
			return err
		},
	}
	c.Flags().BoolVar(&licenses, "licenses", false, "print the licence of the list of PCI hardware instead")
	return c
}
