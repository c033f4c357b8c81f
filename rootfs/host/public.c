/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of the host that every jail may read.  Pure. */
#include "rootfs/host/public.h"

/* clang-format off */
const char *const public_paths[] = {
	/* directories, or links into /usr that are made again */
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",

	/* libraries outside the dynamic loader's built-in directories: ld.so(8) */
	"/etc/ld.so.cache",
	/* what awk, cc, java, editor in /usr/bin point to: update-alternatives(1) */
	"/etc/alternatives",

	/* public certificates, and the defaults of TLS: Debian's, then Fedora's */
	"/etc/ssl/certs",
	"/etc/ssl/openssl.cnf",
	"/etc/pki/ca-trust/extracted",
	"/etc/pki/tls/certs",
	"/etc/pki/tls/openssl.cnf",
	"/etc/crypto-policies",

	/* local time, most often a link into /usr/share/zoneinfo; its name: tzlocal, R */
	"/etc/localtime",
	"/etc/timezone",
	/* which distribution this is: configure scripts, dpkg-vendor(1), Python's platform */
	"/etc/os-release",
	"/etc/lsb-release",
	"/etc/debian_version",
	"/etc/dpkg/origins",

	/* getservbyname(3), getprotobyname(3); types of files by their names: Python's mimetypes */
	"/etc/services",
	"/etc/protocols",
	"/etc/mime.types",
	/* fonts of plots, browsers and converters: fontconfig; matplotlib does not start without */
	"/etc/fonts",
	"/etc/matplotlibrc",

	/* catalogues of XML and SGML: document types from /usr/share instead of the network */
	"/etc/xml",
	/* macros of manual pages; formats, maps and paths of TeX, which packages generate */
	"/etc/texmf",
	"/var/lib/texmf",

	/* languages whose /usr leads here: Maven, Groovy, R, Free Pascal, COBOL, .NET, Haskell */
	"/etc/maven/m2.conf",
	"/etc/maven/logging",
	"/etc/groovy",
	"/etc/R/ldpaths",
	"/etc/R/Makeconf",
	"/etc/R/Renviron",
	"/etc/R/repositories",
	"/etc/fpc.cfg",
	"/etc/gnucobol",
	"/etc/dotnet",
	"/var/lib/ghc/package.conf.d",
};

const struct public_family public_families[] = {
	/* Java: security providers, virtual machines, defaults of logging and networking */
	{ "java-", "-openjdk",
	  { "security", "jvm-amd64.cfg", "jvm-arm64.cfg", "jvm-aarch64.cfg",
	    "logging.properties", "net.properties" } },
	/* ImageMagick: programs for other formats, fonts, dithering */
	{ "ImageMagick-", "",
	  { "delegates.xml", "type.xml", "type-ghostscript.xml", "type-dejavu.xml",
	    "type-urw-base35.xml", "thresholds.xml" } },
	/* Free Pascal: where its units lie; /etc/fpc.cfg leads here */
	{ "fpc-", ".cfg", { NULL } },
};
/* clang-format on */

const size_t public_paths_count = sizeof(public_paths) / sizeof(public_paths[0]);
const size_t public_families_count = sizeof(public_families) / sizeof(public_families[0]);
