package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncepay/oncepay/batch"
	"github.com/oncepay/oncepay/cmd/internal/app"
)

// The settings of whoever speaks to the HTTP door; a server needs none of them.
const (
	apiURL = "ONCEPAY_API_URL"
	apiKey = "ONCEPAY_API_KEY"
)

// apiSetting is a setting's value: the command's flag, the environment, the settings file.
func (s *shared) apiSetting(c *cobra.Command, name string) (string, error) {
	if f := c.Flags().Lookup(app.FlagOf(name)); f.Changed {
		return strings.TrimSpace(f.Value.String()), nil
	}
	file, _, err := app.File(s.config)
	if err != nil {
		return "", err
	}
	for _, source := range []app.Source{app.Environment, file} {
		if value, ok := source(name); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", nil
}

// bindDoor adds the flags of the HTTP door.
func bindDoor(c *cobra.Command) {
	c.Flags().String(app.FlagOf(apiURL), "", "where the API is ("+apiURL+")")
	c.Flags().String(app.FlagOf(apiKey), "", "API key, or file:/path of one ("+apiKey+"); others on this machine can see flags")
	c.Flags().Bool("insecure", false, "allow http to another machine, where the API key and the payments can be read on the way")
}

// openDoor makes the client. No error shows the address or the key.
func (s *shared) openDoor(c *cobra.Command, connections int) (*batch.Client, error) {
	address, err := s.apiSetting(c, apiURL)
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, &app.UsageError{Text: apiURL + ": is required: where the API is, as https://pay.example.com"}
	}
	key, err := s.apiSetting(c, apiKey)
	if err != nil {
		return nil, err
	}
	if key, err = readAPIKey(key); err != nil {
		return nil, &app.UsageError{Text: apiKey + ": " + err.Error()}
	}
	insecure, err := c.Flags().GetBool("insecure")
	if err != nil {
		return nil, err
	}
	client, err := batch.NewClient(batch.ClientOptions{URL: address, APIKey: key, Insecure: insecure, Connections: connections, UserAgent: "oncepay-batch"})
	if err != nil {
		return nil, &app.UsageError{Text: apiURL + ": " + err.Error()}
	}
	return client, nil
}

// readAPIKey reads a key, or the file that one is in.
func readAPIKey(value string) (string, error) {
	if path, ok := strings.CutPrefix(value, "file:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			var failed *fs.PathError
			if errors.As(err, &failed) {
				err = failed.Err
			}
			return "", fmt.Errorf("the file cannot be read: %w", err)
		}
		if value = strings.TrimSpace(string(data)); value == "" {
			return "", errors.New("the file is empty")
		}
	}
	if value == "" {
		return "", errors.New("is required: an API key with the scopes batches:write and payments:read, or file:/path of one (`oncepay keys create --scopes batches:write,payments:read`)")
	}
	for i := range len(value) {
		if value[i] < 0x21 || value[i] > 0x7E {
			return "", errors.New("must be the one line that `oncepay keys create` printed")
		}
	}
	return value, nil
}
