/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_files - files that say or change something about the host, and terminals.  Acts; see
 * attempt.h. */
#include "attempt.h"

#include <ftw.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

static bool try_core_pattern(void)
{
	return can_write("/proc/sys/kernel/core_pattern");
}
static bool try_modprobe_path(void)
{
	return can_write("/proc/sys/kernel/modprobe");
}
static bool try_proc_hostname(void)
{
	return can_write("/proc/sys/kernel/hostname");
}
static bool try_userns_count(void)
{
	return can_write("/proc/sys/user/max_user_namespaces");
}
static bool try_pid_max(void)
{
	return can_write("/proc/sys/kernel/pid_max");
}
static bool try_ip_forward(void)
{
	return can_write("/proc/sys/net/ipv4/ip_forward");
}
static bool try_sysrq(void)
{
	return can_write("/proc/sysrq-trigger");
}
static bool try_kcore(void)
{
	return can_read_something("/proc/kcore");
}
static bool try_kmsg(void)
{
	struct statfs fs; /* not read: that takes the line from the host's own log */
	int fd = open("/proc/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return false;
	errno = ENODATA;
	return fs.f_type == PROC_SUPER_MAGIC;
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
	return worked(mknod("attempt-null", S_IFCHR | 0600, 1 << 8 | 3));
}
static bool try_mknod_block(void)
{
	return worked(mknod("attempt-disk", S_IFBLK | 0600, 254 << 8));
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

/* --- more files of the kernel's ---------------------------------------------------- */

static bool try_binfmt(void)
{
	return can_open("/proc/sys/fs/binfmt_misc/register", O_WRONLY);
}
static bool try_uevent_helper(void)
{
	return can_open("/sys/kernel/uevent_helper", O_WRONLY);
}
static bool try_release_agent(void)
{
	return can_open("/sys/fs/cgroup/release_agent", O_WRONLY) ||
	       can_open("/sys/fs/cgroup/memory/release_agent", O_WRONLY) ||
	       can_open("/sys/fs/cgroup/pids/release_agent", O_WRONLY);
}
static bool try_key_users(void)
{
	return can_read_something("/proc/key-users");
}
static bool try_slabinfo(void)
{
	return can_read_something("/proc/slabinfo");
}
static bool try_vmallocinfo(void)
{
	return can_read_something("/proc/vmallocinfo");
}
static bool try_iomem(void)
{
	return can_read_something("/proc/iomem");
}
static bool try_ioports(void)
{
	return can_read_something("/proc/ioports");
}
static bool try_diskstats(void)
{
	return can_read_something("/proc/diskstats");
}
static bool try_partitions(void)
{
	return can_read_something("/proc/partitions");
}
static bool try_config_gz(void)
{
	return can_read_something("/proc/config.gz");
}
static bool try_sched_debug(void)
{
	return can_read_something("/proc/sched_debug");
}
static bool try_pagemap(void)
{
	return can_read_something("/proc/1/pagemap");
}
static bool try_kpagecount(void)
{
	return can_read_something("/proc/kpagecount");
}

/* Every file of /proc that is no process': can one of them be written? */
static int stop_at_writable(const char *path, const struct stat *st, int kind, struct FTW *level)
{
	(void)level;
	if (kind == FTW_D && path[6] >= '0' && path[6] <= '9')
		return FTW_SKIP_SUBTREE;
	return kind == FTW_F && S_ISREG(st->st_mode) && can_open(path, O_WRONLY) ? FTW_STOP
										 : FTW_CONTINUE;
}
static bool try_any_proc(void)
{
	bool found = nftw("/proc", stop_at_writable, 16, FTW_PHYS | FTW_ACTIONRETVAL) == FTW_STOP;
	errno = EROFS;
	return found;
}

/* Every file system but the scratch: is there a directory one can make a file in? */
static int stop_at_room(const char *path, const struct stat *st, int kind, struct FTW *level)
{
	(void)st, (void)level;
	if (kind != FTW_D)
		return FTW_CONTINUE;
	int fd = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? FTW_STOP : FTW_CONTINUE;
}
static bool try_any_etc(void)
{
	bool found = nftw("/etc", stop_at_room, 16, FTW_PHYS | FTW_ACTIONRETVAL) == FTW_STOP;
	errno = EROFS;
	return found;
}

/* --- names and marks of files -------------------------------------------------------- */

static bool try_hard_link(void)
{
	return worked(link("/usr/bin/env", "attempt-link")) ||
	       worked(link("/usr/bin/env", "/tmp/attempt-link")) ||
	       worked(link("/usr/bin/env", "/usr/bin/attempt-link"));
}
static bool set_mark(const char *name)
{
	int fd = open("attempt-mark", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	return fd >= 0 && worked(fsetxattr(fd, name, "y", 1, 0));
}
static bool try_trusted_xattr(void)
{
	return set_mark("trusted.overlay.opaque");
}
/* What the kernel would read as "cap_sys_admin of the host's": revision 2 names no namespace. */
static bool try_file_capability(void)
{
	const uint32_t all[5] = { 0x02000001, ~0u, 0, ~0u, 0 };
	int fd = open("attempt-mark", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	return fd >= 0 && worked(fsetxattr(fd, "security.capability", all, sizeof(all), 0));
}
/* Write access by way of a descriptor that may only read. */
static bool try_reopen(void)
{
	char path[32];
	int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return fd >= 0 && can_open(path, O_WRONLY);
}
static bool try_chmod_usr(void)
{
	return worked(chmod("/usr/bin/env", 04755));
}
static bool try_tioccons(void)
{
	return worked(ioctl(0, TIOCCONS));
}

static bool thaw_sys(void)
{
	struct mount_attr thawed = { .attr_clr = MOUNT_ATTR_RDONLY };
	return worked(
	    syscall(SYS_mount_setattr, AT_FDCWD, "/sys", AT_RECURSIVE, &thawed, sizeof(thawed)));
}
/* A device that came with an image, by the name that attempts.py gives it. */
static bool try_image_device(void)
{
	return can_open("/zero", O_RDONLY);
}
static bool image_device(void)
{
	return chroot("/dev") == 0;
}

static bool room_in_root(void)
{
	return chroot(".") == 0;
}
static bool room_in_usr(void)
{
	return make_room("/usr", NULL) && mkdir("/usr/bin", 0755) == 0 &&
	       close(open("/usr/bin/env", O_CREAT | O_WRONLY | O_CLOEXEC, 0755)) == 0;
}
static bool room_in_etc(void)
{
	return make_room("/etc", "/etc/passwd") &&
	       close(open("/etc/shadow", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0;
}
static bool room_in_dev(void)
{
	return make_room("/dev", "/dev/null");
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
	ROW_AFTER(write_root, room_in_root),
	ROW_AFTER(write_usr, room_in_usr),
	ROW_AFTER(write_etc, room_in_etc),
	ROW_AFTER(write_dev, room_in_dev),
	ROW_AFTER(replace_null, room_in_dev),
	ROW_AFTER(shadow, room_in_etc),
	ROW(home),
	ROW(var),
	ROW(tiocsti),
	ROW(tiocsti_high_bits),
	ROW(tioclinux),
	ROW(controlling_tty),
	ROW_AFTER(image_device, image_device),
	ROW(binfmt),
	ROW_AFTER(uevent_helper, thaw_sys),
	ROW_AFTER(release_agent, thaw_sys),
	ROW(key_users),
	ROW(slabinfo),
	ROW(vmallocinfo),
	ROW(iomem),
	ROW(ioports),
	ROW(diskstats),
	ROW(partitions),
	ROW(config_gz),
	ROW(sched_debug),
	ROW(pagemap),
	ROW(kpagecount),
	ROW(any_proc),
	ROW_AFTER(any_etc, room_in_etc),
	ROW_AFTER(hard_link, room_in_usr),
	ROW(trusted_xattr),
	ROW(file_capability),
	ROW_AFTER(reopen, room_in_usr),
	ROW_AFTER(chmod_usr, room_in_usr),
	ROW_OWN(tioccons),
};

ATTEMPTS_MAIN(attempts)
