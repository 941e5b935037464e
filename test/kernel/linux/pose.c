// SPDX-License-Identifier: GPL-2.0
/*
 * Lets PCI functions of a test machine pose as others:
 *
 *	pose=0000:21:00.0/10de/2330/030200/a1/10de/16c1;0000:03:*, and so on
 *
 * A name (of which the end may be a star), then in hexadecimal vendor, device,
 * class, revision, subsystem vendor and subsystem device. The first name that
 * fits counts. It is the kernel's record of the function that changes: what
 * sysfs, uevents and driver matching go by. Configuration space is as before.
 *
 * The list outlives the boot, because functions that are plugged in, rescanned
 * or made by SR-IOV are to pose as well. It is fixed up early, before the
 * class decides what else is done to a function.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/pci.h>
#include <linux/string.h>

struct pose {
	char name[16];
	size_t length;		/* how much of the name has to fit */
	unsigned int vendor, device, class, revision;
	unsigned int sub_vendor, sub_device;
};

static struct pose poses[32];
static size_t pose_count;

static int __init pose_add(const char *text)
{
	struct pose *p = &poses[pose_count];
	size_t n = strcspn(text, "/");

	if (pose_count == ARRAY_SIZE(poses) || n >= sizeof(p->name))
		return -ENOSPC;
	strscpy(p->name, text, n + 1);
	p->length = sizeof(p->name);
	if (n && p->name[n - 1] == '*')
		p->length = n - 1;
	if (sscanf(text + n, "/%x/%x/%x/%x/%x/%x", &p->vendor, &p->device, &p->class,
		   &p->revision, &p->sub_vendor, &p->sub_device) != 6)
		return -EINVAL;
	pose_count++;
	return 0;
}

static int __init pose_setup(char *list)
{
	char *text;

	while ((text = strsep(&list, ";"))) {
		int err = pose_add(text);

		if (err)
			pr_err("pose: %s: error %d\n", text, err);
	}
	return 1;
}
__setup("pose=", pose_setup);

static const struct pose *pose_of(struct pci_dev *dev)
{
	size_t i;

	for (i = 0; i < pose_count; i++)
		if (!strncmp(poses[i].name, pci_name(dev), poses[i].length))
			return &poses[i];
	return NULL;
}

static void pose_early(struct pci_dev *dev)
{
	const struct pose *p = pose_of(dev);

	if (!p)
		return;
	dev->vendor = p->vendor;
	dev->device = p->device;
	dev->class = p->class;
	dev->revision = p->revision;
}
DECLARE_PCI_FIXUP_EARLY(PCI_ANY_ID, PCI_ANY_ID, pose_early);

/* The subsystem's IDs are read after the early fixups. */
static void pose_header(struct pci_dev *dev)
{
	const struct pose *p = pose_of(dev);

	if (!p)
		return;
	dev->subsystem_vendor = p->sub_vendor;
	dev->subsystem_device = p->sub_device;
}
DECLARE_PCI_FIXUP_HEADER(PCI_ANY_ID, PCI_ANY_ID, pose_header);
