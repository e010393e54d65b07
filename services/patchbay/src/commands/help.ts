/** What `patchbay help` prints. */
export const HELP = `patchbay: a gateway through which agents register, stay alive and are called

Usage: patchbay [command] [options]

Commands:
  start     run a node (default)
  config    print every setting: value, where it came from
  migrate   bring the database up to date and end
  help      print this

Options:
  --services <list>  services that this process runs: registry,liveness,dispatch,gateway
  -v, --version      print the version
  -h, --help         print this

Settings are environment variables; "patchbay config" lists them.
From a clone: npm start -- <command>.`;
