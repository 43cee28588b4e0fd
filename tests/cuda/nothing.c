/* A library that is no driver. */
int cuInit(unsigned flags);

int
cuInit(unsigned flags)
{
	return (int)flags;
}
