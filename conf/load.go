package conf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// ConfigFlag is the flag that names the file, and in capitals after OCLOCKS_ the environment variable.
const ConfigFlag = "config"

// flagValue is a pflag.Value that checks its text at once and hands it over in Load.
type flagValue struct {
	key  field[Settings]
	text string
}

func (v *flagValue) String() string { return v.text }
func (v *flagValue) Type() string   { return v.key.kind }

func (v *flagValue) Set(text string) error {
	var scratch Settings
	if err := v.key.set(&scratch, text); err != nil {
		return err
	}
	v.text = text
	return nil
}

// AddFlags adds a flag for each setting, and --config.
func AddFlags(flags *pflag.FlagSet) {
	def := Default()
	flags.String(ConfigFlag, "", "configuration file, YAML (env "+envName(ConfigFlag)+")")
	for _, key := range settingFields {
		f := flags.VarPF(&flagValue{key: key, text: key.get(def)}, flagName(key.name), "",
			fmt.Sprintf("%s (env %s, file %s)", key.help, envName(key.name), key.name))
		if key.kind == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// ConfigFile is the path of the configuration file that flags or environment name, "" if neither does.
func ConfigFile(flags *pflag.FlagSet, environ []string) string {
	if f := flags.Lookup(ConfigFlag); f != nil && f.Changed {
		return f.Value.String()
	}
	path, _ := lookupEnv(environ, envName(ConfigFlag))
	return path
}

// Load puts the settings together: a flag wins over the environment, that over the file, that over the default. environ
// is as of os.Environ. An environment variable that is set but empty counts as not set. The settings are valid, or the
// error says what is wrong; it is a *KeyError unless a file could not be read.
func Load(flags *pflag.FlagSet, environ []string) (*Settings, error) {
	s := Default()
	sources := map[string]string{}
	if path := ConfigFile(flags, environ); path != "" {
		if err := s.readFile(path, sources); err != nil {
			return nil, err
		}
	}
	for _, key := range settingFields {
		source, text, ok := override(flags, environ, key)
		if !ok {
			continue
		}
		if err := key.set(s, text); err != nil {
			return nil, &KeyError{Key: key.name, Source: source, Problem: err.Error()}
		}
		sources[key.name] = source
	}
	s.openIfEmpty()
	if err := s.validateFor(sources); err != nil {
		return nil, err
	}
	return s, nil
}

// override finds what the flags or else the environment say of a key.
func override(flags *pflag.FlagSet, environ []string, key field[Settings]) (source, text string, ok bool) {
	if f := flags.Lookup(flagName(key.name)); f != nil && f.Changed {
		return "--" + f.Name, f.Value.String(), true
	}
	name := envName(key.name)
	if text, ok = lookupEnv(environ, name); ok {
		return name, text, true
	}
	return "", "", false
}

// validateFor adds to Validate where the wrong value came from, and refuses users that nobody could ever get credentials
// for.
func (s *Settings) validateFor(sources map[string]string) error {
	err := s.Validate()
	if missing := s.missingData(); err == nil && missing != nil {
		err = missing
	}
	var ke *KeyError
	if errors.As(err, &ke) && ke.Source == "" {
		top, _, _ := strings.Cut(ke.Key, "[")
		ke.Source = sources[top]
	}
	return err
}

// lookupEnv finds a variable in what os.Environ gives; of two entries the last counts.
func lookupEnv(environ []string, name string) (value string, ok bool) {
	for _, e := range environ {
		if k, v, found := strings.Cut(e, "="); found && k == name {
			value, ok = v, v != ""
		}
	}
	return value, ok
}
