# A batch job of Nomad that runs an untrusted program with limits, by the podman driver.
# The nodes' /etc/containers/containers.conf makes cejail-oci the runtime: cejail-oci(8), ENGINES.
job "untrusted" {
  datacenters = ["dc1"]
  type        = "batch"

  group "program" {
    restart {
      attempts = 0
      mode     = "fail"
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }
    task "program" {
      driver = "podman"
      config {
        image           = "registry.example/python:3"
        command         = "python3"
        args            = ["-c", "print(6 * 7)"]
        readonly_rootfs = true
        cap_drop        = ["all"]
        network_mode    = "none"
        ulimit          = { nproc = "64:64" }
      }
      user         = "65534"
      kill_timeout = "5s"
      resources {
        cpu    = 1000
        memory = 256
      }
    }
  }
}
