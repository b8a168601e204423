# One stockaded for each client node, as a system job. raw_exec runs it on the
# node itself, where stockade is installed.
job "stockade" {
  type        = "system"
  datacenters = ["*"]

  group "stockade" {
    task "stockaded" {
      driver = "raw_exec"
      user   = "root"

      config {
        command = "/usr/sbin/stockaded"
      }

      kill_signal  = "SIGTERM"
      kill_timeout = "30s"
    }
  }
}
