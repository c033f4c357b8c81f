/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_files - files that say or change something about the host, and terminals.  Acts; see
 * attempt.h. */
#include "attempt.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static bool try_core_pattern(void)
{
	return can_write("/proc/sys/kernel/core_pattern", "|/x");
}
static bool try_modprobe_path(void)
{
	return can_write("/proc/sys/kernel/modprobe", "/x");
}
static bool try_proc_hostname(void)
{
	return can_write("/proc/sys/kernel/hostname", "x");
}
static bool try_userns_count(void)
{
	return can_write("/proc/sys/user/max_user_namespaces", "10");
}
static bool try_pid_max(void)
{
	return can_write("/proc/sys/kernel/pid_max", "400");
}
static bool try_ip_forward(void)
{
	return can_write("/proc/sys/net/ipv4/ip_forward", "1");
}
static bool try_sysrq(void)
{
	return can_write("/proc/sysrq-trigger", "h");
}
static bool try_kcore(void)
{
	return can_read_something("/proc/kcore");
}
static bool try_kmsg(void)
{
	return can_read_something("/proc/kmsg");
}
static bool try_kallsyms(void)
{
	return can_read_something("/proc/kallsyms");
}
static bool try_keys(void)
{
	return can_read_something("/proc/keys");
}
static bool try_timer_list(void)
{
	return can_read_something("/proc/timer_list");
}
static bool try_modules(void)
{
	return can_read_something("/proc/modules");
}
static bool try_cmdline(void)
{
	return can_read_something("/proc/cmdline");
}
static bool try_sysfs(void)
{
	return can_open("/sys/kernel", O_RDONLY);
}
static bool try_cgroupfs(void)
{
	return can_open("/sys/fs/cgroup", O_RDONLY);
}
static bool try_dev_mem(void)
{
	return can_open("/dev/mem", O_RDONLY);
}
static bool try_dev_kmsg(void)
{
	return can_open("/dev/kmsg", O_RDONLY);
}
static bool try_dev_kvm(void)
{
	return can_open("/dev/kvm", O_RDWR);
}
static bool try_dev_fuse(void)
{
	return can_open("/dev/fuse", O_RDWR);
}
static bool try_dev_tun(void)
{
	return can_open("/dev/net/tun", O_RDWR);
}
static bool try_dev_vsock(void)
{
	return can_open("/dev/vsock", O_RDWR);
}
static bool try_dev_disk(void)
{
	return can_open("/dev/vda", O_RDONLY) || can_open("/dev/sda", O_RDONLY);
}
static bool try_mknod_char(void)
{
	return worked(mknod("/box/attempt-null", S_IFCHR | 0600, 1 << 8 | 3));
}
static bool try_mknod_block(void)
{
	return worked(mknod("/box/attempt-disk", S_IFBLK | 0600, 254 << 8));
}
static bool try_write_root(void)
{
	return can_open("/attempt", O_CREAT | O_WRONLY);
}
static bool try_write_usr(void)
{
	return can_open("/usr/bin/attempt", O_CREAT | O_WRONLY);
}
static bool try_write_etc(void)
{
	return can_open("/etc/passwd", O_WRONLY);
}
static bool try_write_dev(void)
{
	return can_open("/dev/attempt", O_CREAT | O_WRONLY);
}
static bool try_replace_null(void)
{
	return worked(unlink("/dev/null"));
}
static bool try_shadow(void)
{
	return can_open("/etc/shadow", O_RDONLY);
}
static bool try_home(void)
{
	return can_open("/root", O_RDONLY) || can_open("/home", O_RDONLY);
}
static bool try_var(void)
{
	return can_open("/var/lib", O_RDONLY) || can_open("/run/systemd", O_RDONLY);
}

static bool try_tiocsti(void)
{
	return worked(ioctl(0, TIOCSTI, "x"));
}
static bool try_tiocsti_high_bits(void)
{
	return worked(syscall(SYS_ioctl, 0, 1ull << 32 | TIOCSTI, "x"));
}
static bool try_tioclinux(void)
{
	return worked(ioctl(0, TIOCLINUX, "\3"));
}
static bool try_controlling_tty(void)
{
	return can_open("/dev/tty", O_RDWR);
}

static const struct attempt attempts[] = {
	ROW(core_pattern),
	ROW(modprobe_path),
	ROW(proc_hostname),
	ROW(userns_count),
	ROW(pid_max),
	ROW(ip_forward),
	ROW(sysrq),
	ROW(kcore),
	ROW(kmsg),
	ROW(kallsyms),
	ROW(keys),
	ROW(timer_list),
	ROW(modules),
	ROW(cmdline),
	ROW(sysfs),
	ROW(cgroupfs),
	ROW(dev_mem),
	ROW(dev_kmsg),
	ROW(dev_kvm),
	ROW(dev_fuse),
	ROW(dev_tun),
	ROW(dev_vsock),
	ROW(dev_disk),
	ROW(mknod_char),
	ROW(mknod_block),
	ROW(write_root),
	ROW(write_usr),
	ROW(write_etc),
	ROW(write_dev),
	ROW(replace_null),
	ROW(shadow),
	ROW(home),
	ROW(var),
	ROW(tiocsti),
	ROW(tiocsti_high_bits),
	ROW(tioclinux),
	ROW(controlling_tty),
};

int main(int argc, char **argv)
{
	(void)argc;
	make_attempts(attempts, sizeof(attempts) / sizeof(attempts[0]), argv + 1);
	return 0;
}
