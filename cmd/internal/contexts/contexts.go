package contexts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Default is the name for no context: the environment or, without it, this machine. No context can have this name.
const Default = "default"

// Context is where one Curfew runs. At most one of the fields for the password is set.
type Context struct {
	URL             string `yaml:"url" json:"url"`
	User            string `yaml:"user" json:"user"`
	PasswordFile    string `yaml:"password_file,omitempty" json:"password_file,omitempty"`
	PasswordCommand string `yaml:"password_command,omitempty" json:"password_command,omitempty"` // for sh -c; prints the password
}

// Contexts are all contexts of a user.
type Contexts struct {
	Current string             `yaml:"current,omitempty" json:"current"` // "" is Default
	ByName  map[string]Context `yaml:"contexts" json:"contexts"`
}

// Path is the file with the user's contexts.
func Path() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("contexts: %w", err)
	}
	return filepath.Join(dir, "curfew", "contexts.yaml"), nil
}

// Load reads a file of contexts. If there is none, there are no contexts. A file that others may write is refused: it
// names commands that are run.
func Load(path string) (*Contexts, error) {
	c := &Contexts{ByName: map[string]Context{}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("others may write %s, which names commands to run: chmod 600 it", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) { // an empty file has no contexts
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.ByName == nil { // "contexts:" with nothing after it
		c.ByName = map[string]Context{}
	}
	return c, nil
}

// Save writes the file, which only the user may read. It is replaced as a whole or not at all.
func (c *Contexts) Save(path string) error {
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "contexts-") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Find is the context with that name. The error names those that exist.
func (c *Contexts) Find(name string) (Context, error) {
	if one, ok := c.ByName[name]; ok {
		return one, nil
	}
	return Context{}, fmt.Errorf("unknown context %q: want one of %s", name, strings.Join(c.Names(), ", "))
}

// Names are the names of all contexts and Default, in order.
func (c *Contexts) Names() []string {
	return append([]string{Default}, slices.Sorted(maps.Keys(c.ByName))...)
}

var nameOf = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Set adds a context, or replaces the one with that name.
func (c *Contexts) Set(name string, one Context) error {
	if len(name) > 64 || !nameOf.MatchString(name) || name == Default {
		return fmt.Errorf("a context cannot be named %q: want at most 64 letters, digits, '.', '_' and '-', and not %s", name, Default)
	}
	if err := one.check(); err != nil {
		return err
	}
	c.ByName[name] = one
	return nil
}

func (c *Context) check() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("--url: want the address of a management API, such as https://curfew.example.org:15672")
	case u.User != nil:
		return errors.New("the URL has a user in it: use --user, and --password-file or --password-command")
	case c.PasswordFile != "" && c.PasswordCommand != "":
		return errors.New("use either --password-file or --password-command, not both")
	case c.PasswordFile == "" && c.PasswordCommand == "" && c.User != "guest":
		return fmt.Errorf("the password of %s is missing: add --password-file, or --password-command with a command that prints it", c.User)
	}
	return nil
}

// Remove removes a context. If it was current, Default becomes current.
func (c *Contexts) Remove(name string) error {
	if _, err := c.Find(name); err != nil {
		return err
	}
	delete(c.ByName, name)
	if c.Current == name {
		c.Current = ""
	}
	return nil
}

// Use makes a context current.
func (c *Contexts) Use(name string) error {
	if name == Default {
		c.Current = ""
		return nil
	}
	_, err := c.Find(name)
	if err == nil {
		c.Current = name
	}
	return err
}

// commandLimit is how long a command may take to print a password. It may have to ask the user.
const commandLimit = time.Minute

// Password reads the user's password from the file or the command that the context names.
func (c *Context) Password() (string, error) {
	switch {
	case c.PasswordFile != "":
		return ReadPassword(c.PasswordFile)
	case c.PasswordCommand != "":
		ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
		defer cancel()
		run := exec.CommandContext(ctx, "sh", "-c", c.PasswordCommand)
		run.Stdin, run.Stderr = os.Stdin, os.Stderr // it may ask for a passphrase
		run.WaitDelay = time.Second
		out, err := run.Output()
		if err != nil {
			return "", fmt.Errorf("the password command %q failed: %w", c.PasswordCommand, err)
		}
		return firstLine(out), nil
	}
	return "guest", nil // the password of a new Curfew
}

// ReadPassword reads a password from a file: its first line.
func ReadPassword(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return firstLine(text), nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimRight(line, "\r")
}
